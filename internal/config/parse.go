package config

// Parse reads a configuration from data; name is what errors call it, given wins
// over what data says (nil: nothing does). No file is read: a password from a file
// or credential stays empty (see Load). The error is an *Error with all problems.
func Parse(name string, data []byte, given *Given) (*Config, error) {
	c, p := newParser(name, given).config(name, data)
	if err := p.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// config reads the whole of a configuration.
func (p *parser) config(name string, data []byte) (*Config, *parser) {
	c := &Config{File: name, Given: p.given, From: p.from}
	root := p.section("", p.document(data))
	if len(p.problems) > 0 && !root.written() {
		return c, p // one syntax error, not one for each key it hid
	}
	root.read(c.items(), false)
	root.close()
	return c, p
}

// Load reads and validates the configuration file and the password it names, with
// the process's environment. The error is an *Error when the content is wrong.
func Load(path string) (*Config, error) { return LoadWith(path, Environment()) }

// LoadWith is Load with flags too. Of NoFile nothing but what is given is read.
func LoadWith(path string, given *Given) (*Config, error) {
	data, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	return LoadText(path, data, given)
}

// LoadPublic is Load without passwords, keys and certificates, for those who need none
// of them and should not be able to read them.
func LoadPublic(path string) (*Config, error) {
	data, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	return LoadPublicText(path, data)
}

// LoadPublicText is LoadPublic for what a file says: path is what errors call it.
func LoadPublicText(path string, data []byte) (*Config, error) {
	p := newParser(path, Environment())
	p.public = true
	c, _ := p.config(path, data)
	if err := p.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// ReadText gives what a configuration file says, within its limit.
func ReadText(path string) ([]byte, error) { return readConfig(path) }

// LoadText is LoadWith for what a file says, or said: path is what errors call it.
func LoadText(path string, data []byte, given *Given) (_ *Config, err error) {
	p := newParser(path, given)
	c, _ := p.config(path, data)
	if from := c.Session.PasswordFrom; from.Kind == PasswordFile || from.Kind == PasswordKeyFile || from.Kind == PasswordCredential {
		if c.Session.Password, c.Session.OldPassword, err = readPasswords(from, given); err != nil {
			pr := Problem{File: path, Key: "session." + string(from.Kind), Value: from.Name, What: err.Error(), Allowed: allowedPassword}
			if n := find(p.document(data), "session", string(from.Kind)); n != nil {
				pr.Line, pr.Column = n.Line, n.Column
			}
			p.add(pr)
		}
	}
	loadTLS(c, p, path, data)
	loadBFD(c, p, path, data, given)
	if len(p.problems) > 0 { // what is missing may be in a variable whose name is mistyped
		for _, w := range c.UnknownVariables() {
			p.add(Problem{File: path, What: w})
		}
		return nil, p.err()
	}
	return c, nil
}
