/**
 * Arrays of one dimension as Postgres receives them in binary (`array_recv` in its source; the driver sends a Buffer so):
 * no digits are written here and none are read there, and a flush of thousands of values leaves a few buffers to the garbage
 * collector instead of some objects and strings for each value.
 *
 *   | dimensions | may hold nulls | type of the elements | how many | lower bound | of each element: length, bytes |
 */

const HEADER_BYTES = 20
/** Of pg_type; those of built-in types never change. */
const TYPES = { boolean: 16, bytea: 17, integer: 23, text: 25, float8: 701, uuid: 2950 }
const NULL = -1

export function booleanArray(values: Uint8Array): Buffer {
  return arrayOf(TYPES.boolean, 1, values.length, (to, at, i) => to.setUint8(at, values[i] ?? 0))
}

export function integerArray(values: Int32Array): Buffer {
  return arrayOf(TYPES.integer, 4, values.length, (to, at, i) => to.setInt32(at, values[i] ?? 0))
}

export function float8Array(values: Float64Array): Buffer {
  return arrayOf(TYPES.float8, 8, values.length, (to, at, i) => to.setFloat64(at, values[i] ?? 0))
}

/** `ids`: 16 bytes for each. */
export function uuidArray(ids: Uint8Array): Buffer {
  const from = new DataView(ids.buffer, ids.byteOffset, ids.byteLength)
  return arrayOf(TYPES.uuid, 16, ids.length / 16, (to, at, i) => {
    for (let word = 0; word < 16; word += 4) to.setInt32(at + word, from.getInt32(i * 16 + word))
  })
}

/** Element i is `bytes` from `offsets[i]` to `offsets[i + 1]`, null when that is nothing. */
export function byteaArray(offsets: Int32Array, bytes: Uint8Array): Buffer {
  const count = offsets.length - 1
  const first = offsets[0] ?? 0
  const array = Buffer.allocUnsafe(HEADER_BYTES + count * 4 + (offsets[count] ?? 0) - first)
  const view = begin(array, TYPES.bytea, count)
  let at = HEADER_BYTES
  for (let i = 0, start = first; i < count; i++) {
    const end = offsets[i + 1] ?? 0
    view.setInt32(at, start === end ? NULL : end - start)
    at += 4
    while (start < end) array[at++] = bytes[start++] ?? 0
  }
  return array
}

/** Element i is `words[places[i]]`, of ASCII. Throws a RangeError when there is no such word. */
export function textArray(places: Uint8Array, words: readonly string[]): Buffer {
  const encoded = words.map((word) => Buffer.from(word, 'latin1'))
  let size = HEADER_BYTES + places.length * 4
  for (const place of places) size += encoded[place]?.length ?? 0
  const array = Buffer.allocUnsafe(size)
  const view = begin(array, TYPES.text, places.length)
  let at = HEADER_BYTES
  for (const place of places) {
    const word = encoded[place]
    if (word === undefined) throw new RangeError(`There is no word ${place}`)
    view.setInt32(at, word.length)
    array.set(word, at + 4)
    at += 4 + word.length
  }
  return array
}

/** An array of elements of `size` bytes each, which `put` writes to their places. */
function arrayOf(
  type: number,
  size: number,
  count: number,
  put: (to: DataView, at: number, i: number) => void,
): Buffer {
  const array = Buffer.allocUnsafe(HEADER_BYTES + count * (4 + size))
  const view = begin(array, type, count)
  for (let i = 0, at = HEADER_BYTES; i < count; i++, at += 4 + size) {
    view.setInt32(at, size)
    put(view, at + 4, i)
  }
  return array
}

function begin(array: Buffer, type: number, count: number): DataView {
  const view = new DataView(array.buffer, array.byteOffset, array.length)
  for (const [i, word] of [1, 1, type, count, 1].entries()) view.setInt32(i * 4, word)
  return view
}
