package model

import (
	"fmt"
	"reflect"
)

// Key is one value that may be set of a mechanism.
type Key struct {
	Name    string `json:"key"`
	Type    string `json:"type"`
	Default string `json:"default"`
	About   string `json:"about"`
}

// Keys lists what may be set of settings, with the values that they have now.
func Keys(s Settings) []Key {
	v := reflect.ValueOf(s).Elem()
	var out []Key
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if name := f.Tag.Get("yaml"); name != "" {
			out = append(out, Key{name, typeName(f.Type), fmt.Sprint(v.Field(i).Interface()), f.Tag.Get("about")})
		}
	}
	return out
}

// typeName says how a value of a type is written in a scenario.
func typeName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Time]():
		return "time"
	case reflect.TypeFor[Rate]():
		return "rate"
	case reflect.TypeFor[Size]():
		return "size"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "number"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "list"
	}
	return "whole number"
}
