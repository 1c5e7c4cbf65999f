package config

// Parse reads a configuration from data; name is what errors call it, env looks
// up environment variables (nil: none). No file is read: a password from a file
// or credential stays empty (see Load). The error is an *Error with all problems.
func Parse(name string, data []byte, env func(string) string) (*Config, error) {
	c, p := parse(name, data, env)
	if err := p.err(); err != nil {
		return nil, err
	}
	return c, nil
}

func parse(name string, data []byte, env func(string) string) (*Config, *parser) {
	return newParser(name, env).config(name, data)
}

// config reads the whole of a configuration.
func (p *parser) config(name string, data []byte) (*Config, *parser) {
	c := &Config{File: name, Flags: p.flags, From: p.from}
	root := p.section("", p.document(data))
	if len(p.problems) > 0 && !root.written() {
		return c, p // one syntax error, not one for each key it hid
	}
	root.read(c.items(), false)
	root.close()
	return c, p
}
