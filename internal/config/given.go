package config

import (
	"os"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// Given is what is said beside the file: by the flags of a command, and by the environment of
// the process; nil: nothing is.
type Given struct {
	flags *pflag.FlagSet
	viper *viper.Viper
}

// keyToVariable makes of a key what follows the prefix of its variable.
func keyToVariable() *strings.Replacer { return strings.NewReplacer(".", "_", "-", "_") }

// variables is what the name of every variable begins with, and an underscore.
const variables = "INOF"

// EnvName is the environment variable of a key.
func EnvName(key string) string {
	return variables + "_" + strings.ToUpper(keyToVariable().Replace(key))
}

// NewGiven looks at flags, which may be parsed later, and at the environment. The flag of a
// setting has its key as name (see Flags).
func NewGiven(flags *pflag.FlagSet) *Given {
	v := viper.NewWithOptions(viper.KeyDelimiter("\x00"), viper.EnvKeyReplacer(keyToVariable())) // a key is one name: none hides another
	v.SetEnvPrefix(variables)
	v.AutomaticEnv()
	_ = v.BindPFlags(flags) // fails for a flag that is nil, which a set has none of
	return &Given{flags: flags, viper: v}
}

// Environment is what is said by variables alone.
func Environment() *Given { return NewGiven(new(pflag.FlagSet)) }

// Value gives what a flag or else a variable says of a key, and which of them: "flag --KEY" or
// "environment NAME"; ok is false where neither does. An empty variable is none.
func (g *Given) Value(key string) (value, from string, ok bool) {
	if g == nil || !g.viper.IsSet(key) {
		return "", "", false
	}
	from = "environment " + EnvName(key)
	if g.flags.Changed(key) {
		from = "flag --" + key
	}
	return g.viper.GetString(key), from, true
}

// variable gives any variable of the environment, such as one that holds a password.
func (g *Given) variable(name string) string {
	if g == nil {
		return ""
	}
	return os.Getenv(name)
}
