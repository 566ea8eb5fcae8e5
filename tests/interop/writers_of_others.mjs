// Writes a file of each type with hyparquet-writer, apache-arrow, parquet-wasm and avsc; see writers_of_others.py.
import { writeFileSync } from 'node:fs'
import * as A from 'apache-arrow'
import avro from 'avsc'
import { parquetWriteBuffer } from 'hyparquet-writer'
import * as wasm from 'parquet-wasm/node'

const at = new Date('2020-02-29T12:00:00.123Z')
const hyparquet = {
  BOOLEAN: [true, null, false], INT32: [-5, null], INT64: [1n << 62n, null], FLOAT: [1.5, null], DOUBLE: [2.5, null],
  STRING: ['é', null, ''], JSON: [{ a: 1 }, null], UUID: ['00010203-0405-0607-0809-0a0b0c0d0e0f'],
  TIMESTAMP: [at, null], BYTE_ARRAY: [new Uint8Array([255, 0])], FLOAT16: [1.5],
}
for (const [type, data] of Object.entries(hyparquet)) {
  const file = parquetWriteBuffer({ columnData: [{ name: 'v', data, type }] })
  writeFileSync(`hyparquet.${type.toLowerCase()}.parquet`, new Uint8Array(file))
}
const x = new A.Field('x', new A.Int32(), true)
const entry = new A.Struct([new A.Field('key', new A.Utf8(), false), new A.Field('value', new A.Int32(), true)])
const arrow = {
  bool: [[true, null, false], new A.Bool()], int8: [[-128, null], new A.Int8()],
  uint64: [[18446744073709551615n], new A.Uint64()], half: [[1.5], new A.Float16()],
  double: [[2.5, null], new A.Float64()], text: [['é', null], new A.Utf8()], dictionary: [['a', null, 'a'], undefined],
  date: [[at], new A.DateDay()], timestamp: [[at], new A.TimestampMillisecond()],
  list: [[[1, null], []], new A.List(x)], fixed: [[[1, 2]], new A.FixedSizeList(2, x)],
  struct: [[{ x: 1 }, null], new A.Struct([x])], map: [[{ k: 1 }], new A.Map_(new A.Field('entries', entry, false))],
}
for (const [name, [values, type]] of Object.entries(arrow)) {
  const table = new A.Table({ v: type ? A.vectorFromArray(values, type) : A.vectorFromArray(values) })
  for (const kind of ['file', 'stream']) writeFileSync(`${kind}.${name}.arrow`, A.tableToIPC(table, kind))
  writeFileSync(`wasm.${name}.parquet`, wasm.writeParquet(wasm.Table.fromIPCStream(A.tableToIPC(table, 'stream'))))
}
const avsc = {
  bool: ['boolean', true], int: ['int', -5], long: [['null', 'long'], 5], double: ['double', 2.5],
  text: [['null', 'string'], 'é'], bytes: ['bytes', Buffer.from([255])],
  enum: [{ type: 'enum', name: 'e', symbols: ['A', 'B'] }, 'B'], list: [{ type: 'array', items: 'int' }, [1, 2]],
  map: [{ type: 'map', values: 'long' }, { k: 1 }], nameless: [{ type: 'record', fields: [{ name: 'x', type: 'int' }] }, { x: 1 }],
}
for (const [name, [type, value]] of Object.entries(avsc)) {
  const schema = { type: 'record', name: 'r', fields: [{ name: 'v', type }] }
  avro.createFileEncoder(`avsc.${name}.avro`, schema).end({ v: value })
}
