// Renders the templates of deploy/helm/slipway as Helm does, for the functions that the chart uses, and more strictly: a value that is not
// there is an error. Reads {"templates": {name: text}, "data": {...}} and writes {name: text}.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"text/template"
)

func empty(value any) bool {
	return value == nil || value == "" || value == false || value == 0.0
}

func main() {
	var asked struct {
		Templates map[string]string
		Data      map[string]any
	}
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		fail(err)
	}
	all := template.New("chart").Option("missingkey=error")
	lines := func(count int, text string) string {
		indent := "\n" + strings.Repeat(" ", count)
		return indent + strings.ReplaceAll(text, "\n", indent)
	}
	all.Funcs(template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var out bytes.Buffer
			err := all.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
		"nindent": lines,
		"quote":   func(value any) string { return fmt.Sprintf("%q", fmt.Sprint(value)) },
		"upper":   strings.ToUpper,
		"default": func(other, value any) any {
			if empty(value) {
				return other
			}
			return value
		},
		"required": func(message string, value any) (any, error) {
			if empty(value) {
				return nil, errors.New(message)
			}
			return value, nil
		},
		"kindIs":  func(kind string, value any) bool { return kind == reflect.ValueOf(value).Kind().String() },
		"ternary": func(yes, no any, condition bool) any {
			if condition {
				return yes
			}
			return no
		},
		"toJson": func(value any) (string, error) {
			text, err := json.Marshal(value)
			return string(text), err
		},
		"toYaml": toYaml,
	})
	for name, text := range asked.Templates {
		if _, err := all.New(name).Parse(text); err != nil {
			fail(err)
		}
	}
	made := map[string]string{}
	for name := range asked.Templates {
		if strings.HasSuffix(name, ".tpl") {
			continue
		}
		var out bytes.Buffer
		if err := all.ExecuteTemplate(&out, name, asked.Data); err != nil {
			fail(err)
		}
		made[name] = out.String()
	}
	if err := json.NewEncoder(os.Stdout).Encode(made); err != nil {
		fail(err)
	}
}

// A line for each member or element, as templates put them below others; what is in them as JSON, which is YAML, too.
func toYaml(value any) (string, error) {
	var lines []string
	add := func(before string, value any) error {
		text, err := json.Marshal(value)
		lines = append(lines, before+string(text))
		return err
	}
	var err error
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			err = errors.Join(err, add(fmt.Sprintf("%q: ", name), member))
		}
	case []any:
		for _, element := range value {
			err = errors.Join(err, add("- ", element))
		}
	default:
		err = add("", value)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), err
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
