// Renders the templates of deploy/helm/slipway as Helm does, with the functions that the chart uses. It is stricter: a missing value is an
// error. Reads {"templates": {name: text}, "data": {...}} and writes {name: text}.
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

func isEmpty(value any) bool {
	return value == nil || value == "" || value == false || value == 0.0
}

func main() {
	var input struct {
		Templates map[string]string
		Data      map[string]any
	}
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		fail(err)
	}
	chart := template.New("chart").Option("missingkey=error")
	indent := func(count int, text string) string {
		newline := "\n" + strings.Repeat(" ", count)
		return newline + strings.ReplaceAll(text, "\n", newline)
	}
	chart.Funcs(template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var out bytes.Buffer
			err := chart.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
		"nindent": indent,
		"quote":   func(value any) string { return fmt.Sprintf("%q", fmt.Sprint(value)) },
		"upper":   strings.ToUpper,
		"default": func(fallback, value any) any {
			if isEmpty(value) {
				return fallback
			}
			return value
		},
		"required": func(message string, value any) (any, error) {
			if isEmpty(value) {
				return nil, errors.New(message)
			}
			return value, nil
		},
		"kindIs": func(kind string, value any) bool { return kind == reflect.ValueOf(value).Kind().String() },
		"ternary": func(whenTrue, whenFalse any, condition bool) any {
			if condition {
				return whenTrue
			}
			return whenFalse
		},
		"toJson": func(value any) (string, error) {
			text, err := json.Marshal(value)
			return string(text), err
		},
		"toYaml": toYaml,
	})
	for name, text := range input.Templates {
		if _, err := chart.New(name).Parse(text); err != nil {
			fail(err)
		}
	}
	output := map[string]string{}
	for name := range input.Templates {
		if strings.HasSuffix(name, ".tpl") {
			continue
		}
		var out bytes.Buffer
		if err := chart.ExecuteTemplate(&out, name, input.Data); err != nil {
			fail(err)
		}
		output[name] = out.String()
	}
	if err := json.NewEncoder(os.Stdout).Encode(output); err != nil {
		fail(err)
	}
}

// Returns one line for each member or element, so that templates can indent them. Nested values are JSON, which is valid YAML.
func toYaml(value any) (string, error) {
	var lines []string
	add := func(prefix string, value any) error {
		text, err := json.Marshal(value)
		lines = append(lines, prefix+string(text))
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
