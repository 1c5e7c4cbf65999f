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
			value := fmt.Sprint(v.Field(i).Interface())
			if value == "0ps" {
				value = "0"
			}
			out = append(out, Key{name, TypeName(f.Type), value, f.Tag.Get("about")})
		}
	}
	return out
}

// TypeName says how a value of a type is written in a scenario.
func TypeName(t reflect.Type) string {
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
