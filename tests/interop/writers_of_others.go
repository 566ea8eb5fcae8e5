// Writes one file of each column type, with parquet-go, arrow-go and hamba/avro.
package main

import (
	"fmt"
	"math/big"
	"os"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/hamba/avro/v2/ocf"
	"github.com/parquet-go/parquet-go"
)

var at = time.Date(2020, 2, 29, 12, 0, 0, 123456000, time.UTC)

func ptr[T any](v T) *T { return &v }

type pair struct {
	X int64   `parquet:"x"`
	Y *string `parquet:"y,optional"`
}

func pq[T any](name string, values ...T) {
	type row struct {
		V T `parquet:"v"`
	}
	rows := make([]row, len(values))
	for i, v := range values {
		rows[i].V = v
	}
	report("parquet-go", name, parquet.WriteFile("parquet-go."+name+".parquet", rows))
}

func report(writer, name string, err error) {
	if err != nil {
		fmt.Println(writer, name, "not written:", err)
	}
}

func av(name, schema string, values ...any) {
	f, _ := os.Create("hamba." + name + ".avro")
	enc, err := ocf.NewEncoder(`{"type":"record","name":"r","fields":[{"name":"v","type":`+schema+`}]}`, f)
	if err == nil {
		for _, v := range values {
			if err = enc.Encode(map[string]any{"v": v}); err != nil {
				break
			}
		}
		enc.Close()
	}
	report("hamba", name, err)
	if err != nil {
		os.Remove("hamba." + name + ".avro")
	}
}

func ar(name string, kind arrow.DataType, json string) {
	a, _, err := array.FromJSON(memory.DefaultAllocator, kind, strings.NewReader(json))
	if err != nil {
		report("arrow-go", name, err)
		return
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: kind, Nullable: true}}, nil)
	rec := array.NewRecordBatch(schema, []arrow.Array{a}, int64(a.Len()))
	f, _ := os.Create("arrow-go." + name + ".arrow")
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(schema))
	if err == nil {
		err = w.Write(rec)
		w.Close()
	}
	report("arrow-go", name, err)
	g, _ := os.Create("arrow-go." + name + ".parquet")
	p, err := pqarrow.NewFileWriter(schema, g, nil, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err == nil {
		if err = p.Write(rec); err == nil {
			err = p.Close()
		}
	}
	report("arrow-go parquet", name, err)
	if err != nil {
		os.Remove("arrow-go." + name + ".parquet")
	}
}

func main() {
	pq("bool", ptr(true), nil, ptr(false))
	pq("int8", int8(-128), int8(127))
	pq("int32", ptr(int32(-5)), nil)
	pq("int64", ptr(int64(1)<<62), nil)
	pq("uint8", uint8(255))
	pq("uint32", uint32(1<<32-1))
	pq("uint64", uint64(1<<64-1))
	pq("float", float32(1.5))
	pq("double", ptr(2.5), nil)
	pq("text", ptr(""), nil, ptr("é"))
	pq("bytes", []byte{255, 0})
	pq("list", []int64{1, 2}, []int64{})
	pq("struct", pair{1, nil}, pair{2, ptr("a")})
	pq("structs", []pair{{1, ptr("a")}})
	pq("map", map[string]int64{"k": 1})
	pq("timestamp", at)
	type tagged struct {
		Uuid  [16]byte  `parquet:"uuid,uuid"`
		Enum  string    `parquet:"enum,enum"`
		Json  string    `parquet:"json,json"`
		Dec   int64     `parquet:"dec,decimal(2:18)"`
		Date  int32     `parquet:"date,date"`
		Ms    time.Time `parquet:"ms,timestamp(millisecond)"`
		Us    time.Time `parquet:"us,timestamp(microsecond)"`
		Delta int64     `parquet:"delta,delta"`
		Dict  string    `parquet:"dict,dict,zstd"`
		List  []string  `parquet:"list,list"`
		Split float64   `parquet:"split,split"`
	}
	report("parquet-go", "tagged", parquet.WriteFile("parquet-go.tagged.parquet", []tagged{{[16]byte{1}, "A", "{}", 125, 18321, at.Truncate(time.Millisecond), at, 7, "d", []string{"a"}, 1.5}}))
	av("bool", `"boolean"`, true, false)
	av("int", `"int"`, 5, -5)
	av("long", `["null","long"]`, int64(1)<<62, nil)
	av("float", `"float"`, float32(1.5))
	av("double", `"double"`, 2.5)
	av("text", `["null","string"]`, "é", nil)
	av("bytes", `"bytes"`, []byte{255})
	av("enum", `{"type":"enum","name":"e","symbols":["A","B"]}`, "B")
	av("fixed", `{"type":"fixed","name":"f","size":3}`, [3]byte{1, 2, 3})
	av("date", `{"type":"int","logicalType":"date"}`, at)
	av("micros", `{"type":"long","logicalType":"timestamp-micros"}`, at)
	av("millis", `{"type":"long","logicalType":"timestamp-millis"}`, at.Truncate(time.Millisecond))
	av("decimal", `{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}`, big.NewRat(-125, 100))
	av("list", `{"type":"array","items":"long"}`, []int64{1, 2})
	av("map", `{"type":"map","values":"long"}`, map[string]int64{"k": 1})
	av("struct", `{"type":"record","name":"p","fields":[{"name":"x","type":"long"}]}`, map[string]any{"x": int64(1)})
	v := arrow.PrimitiveTypes
	ar("bool", arrow.FixedWidthTypes.Boolean, `[true,null,false]`)
	ar("int8", v.Int8, `[-128,null]`)
	ar("uint64", v.Uint64, `[18446744073709551615]`)
	ar("half", arrow.FixedWidthTypes.Float16, `[1.5,null]`)
	ar("double", v.Float64, `[2.5,null]`)
	ar("text", arrow.BinaryTypes.String, `["é",null]`)
	ar("view", arrow.BinaryTypes.StringView, `["longer than twelve bytes",null]`)
	ar("date", v.Date32, `["2020-02-29",null]`)
	ar("time", arrow.FixedWidthTypes.Time64us, `["01:02:03.000004"]`)
	ar("micros", arrow.FixedWidthTypes.Timestamp_us, `["2020-02-29T12:00:00.123456Z",null]`)
	ar("decimal", &arrow.Decimal128Type{Precision: 9, Scale: 2}, `["-1.25",null]`)
	ar("decimal32", &arrow.Decimal32Type{Precision: 5, Scale: 2}, `["-1.25",null]`)
	ar("list", arrow.ListOf(v.Int64), `[[1,null],null,[]]`)
	ar("listview", arrow.ListViewOf(v.Int64), `[[1,null],null,[]]`)
	ar("fixedlist", arrow.FixedSizeListOf(2, v.Int64), `[[1,null],null]`)
	ar("struct", arrow.StructOf(arrow.Field{Name: "x", Type: v.Int64, Nullable: true}), `[{"x":1},null]`)
	ar("map", arrow.MapOf(arrow.BinaryTypes.String, v.Int64), `[[{"key":"k","value":1}],null]`)
	ar("dictionary", &arrow.DictionaryType{IndexType: v.Int8, ValueType: arrow.BinaryTypes.String}, `["a",null,"a"]`)
}
