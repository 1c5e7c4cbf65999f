package config

import "os"

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

// Load reads and validates the configuration file and the password it names, with
// the process's environment. The error is an *Error when the content is wrong.
func Load(path string) (*Config, error) { return LoadWith(path, nil) }

// LoadWith is Load with flags, by key. Of NoFile nothing but these and the environment is read.
func LoadWith(path string, flags map[string]string) (*Config, error) {
	return load(path, flags, os.Getenv)
}

// LoadPublic is Load without passwords, keys and certificates, for those who need none
// of them and should not be able to read them.
func LoadPublic(path string) (*Config, error) {
	data, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	p := newParser(path, os.Getenv)
	p.public = true
	c, _ := p.config(path, data)
	if err := p.err(); err != nil {
		return nil, err
	}
	return c, nil
}

func load(path string, flags map[string]string, env func(string) string) (*Config, error) {
	data, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	return loadText(path, data, flags, env)
}

// LoadText is LoadWith for what a file says, or said: path is what errors call it.
func LoadText(path string, data []byte, flags map[string]string) (*Config, error) {
	return loadText(path, data, flags, os.Getenv)
}

// ReadText gives what a configuration file says, within its limit.
func ReadText(path string) ([]byte, error) { return readConfig(path) }

func loadText(path string, data []byte, flags map[string]string, env func(string) string) (_ *Config, err error) {
	p := newParser(path, env)
	p.flags = flags
	c, _ := p.config(path, data)
	if from := c.Session.PasswordFrom; from.Kind == PasswordFile || from.Kind == PasswordCredential {
		if c.Session.Password, c.Session.OldPassword, err = readPasswords(from, env); err != nil {
			pr := Problem{File: path, Key: "session." + string(from.Kind), Value: from.Name, What: err.Error(), Allowed: allowedPassword}
			if n := find(p.document(data), "session", string(from.Kind)); n != nil {
				pr.Line, pr.Column = n.Line, n.Column
			}
			p.add(pr)
		}
	}
	loadTLS(c, p, path, data)
	loadBFD(c, p, path, data, env)
	if err := p.err(); err != nil {
		return nil, err
	}
	return c, nil
}
