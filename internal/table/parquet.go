// SPDX-License-Identifier: Apache-2.0

package table

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

// goTypes are the types of a row's fields for Parquet; a cell without a value is null.
var goTypes = map[columnKind]reflect.Type{
	text:   reflect.TypeFor[*string](),
	number: reflect.TypeFor[*float64](),
	whole:  reflect.TypeFor[*int64](),
	yesNo:  reflect.TypeFor[*bool](),
}

// WriteParquet writes the table as Parquet, with the columns of the CSV file in their order.
func (t Table) WriteParquet(w io.Writer) error {
	kinds := make([]columnKind, 0, len(columns)+len(t.Parameters))
	for _, c := range columns {
		kinds = append(kinds, c.kind)
	}
	for range t.Parameters {
		kinds = append(kinds, text)
	}
	records := t.records()
	row := rowType(records[0], kinds)
	out := parquet.NewWriter(w, parquet.SchemaOf(reflect.New(row).Interface()))
	for _, cells := range records[1:] {
		v := reflect.New(row)
		for i, cell := range cells {
			if err := setCell(v.Elem().Field(i), kinds[i], cell); err != nil {
				return errors.Join(fmt.Errorf("column %s: %w", records[0][i], err), out.Close())
			}
		}
		if err := out.Write(v.Interface()); err != nil {
			return fmt.Errorf("write the table as Parquet: %w", err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("write the table as Parquet: %w", err)
	}
	return nil
}

// rowType returns a struct with a field for each column: a schema keeps the order of a struct's.
func rowType(names []string, kinds []columnKind) reflect.Type {
	var fields []reflect.StructField
	for i, name := range names {
		fields = append(fields, reflect.StructField{Name: "C" + strconv.Itoa(i),
			Type: goTypes[kinds[i]],
			Tag:  reflect.StructTag(fmt.Sprintf("parquet:%q", name+",optional"))})
	}
	return reflect.StructOf(fields)
}

// setCell sets a field to the value of a cell; it stays nil for an empty one.
func setCell(field reflect.Value, kind columnKind, cell string) error {
	if cell == "" {
		return nil
	}
	switch kind {
	case number:
		v, err := strconv.ParseFloat(cell, 64)
		field.Set(reflect.ValueOf(&v))
		return err
	case whole:
		v, err := strconv.ParseInt(cell, 10, 64)
		field.Set(reflect.ValueOf(&v))
		return err
	case yesNo:
		v, err := strconv.ParseBool(cell)
		field.Set(reflect.ValueOf(&v))
		return err
	}
	field.Set(reflect.ValueOf(&cell))
	return nil
}
