/**
 * Encodes one-dimensional arrays in the binary format of Postgres (`array_recv` in its source). The driver sends a
 * parameter in this format when it is a Buffer. No number is formatted or parsed, and a flush of thousands of values
 * allocates a few buffers instead of several objects and strings per value.
 *
 *   | dimensions | may contain nulls | OID of the elements' type | length | lower bound | for each element: length, bytes |
 */

const HEADER_BYTES = 20
/** The OIDs of built-in types in pg_type, which never change. */
const TYPES = { boolean: 16, bytea: 17, integer: 23, text: 25, float8: 701, uuid: 2950 }
const NULL = -1

export function booleanArray(values: Uint8Array): Buffer {
  return arrayOf(TYPES.boolean, 1, values.length, (to, at, i) => to.setUint8(at, values[i]!))
}

export function integerArray(values: Int32Array): Buffer {
  return arrayOf(TYPES.integer, 4, values.length, (to, at, i) => to.setInt32(at, values[i]!))
}

export function float8Array(values: Float64Array): Buffer {
  return arrayOf(TYPES.float8, 8, values.length, (to, at, i) => to.setFloat64(at, values[i]!))
}

/** Returns an array of uuids. `ids` has 16 bytes per element. */
export function uuidArray(ids: Uint8Array): Buffer {
  const from = new DataView(ids.buffer, ids.byteOffset, ids.byteLength)
  return arrayOf(TYPES.uuid, 16, ids.length / 16, (to, at, i) => {
    for (let word = 0; word < 16; word += 4) to.setInt32(at + word, from.getInt32(i * 16 + word))
  })
}

/**
 * Returns an array of `bytea`. Element i is `bytes` from `offsets[i]` to `offsets[i + 1]`, or null when that range is
 * empty.
 */
export function byteaArray(offsets: Int32Array, bytes: Uint8Array): Buffer {
  const count = offsets.length - 1
  const first = offsets[0]!
  const array = Buffer.allocUnsafe(HEADER_BYTES + count * 4 + offsets[count]! - first)
  const view = begin(array, TYPES.bytea, count)
  let at = HEADER_BYTES
  for (let i = 0, start = first; i < count; i++) {
    const end = offsets[i + 1]!
    view.setInt32(at, start === end ? NULL : end - start)
    at += 4
    while (start < end) array[at++] = bytes[start++]!
  }
  return array
}

/**
 * Returns an array of text. Element i is `words[indexes[i]]`. The words must be ASCII. Throws a RangeError for an index
 * without a word.
 */
export function textArray(indexes: Uint8Array, words: readonly string[]): Buffer {
  const encoded = words.map((word) => Buffer.from(word, 'latin1'))
  let size = HEADER_BYTES + indexes.length * 4
  for (const index of indexes) size += encoded[index]?.length ?? 0
  const array = Buffer.allocUnsafe(size)
  const view = begin(array, TYPES.text, indexes.length)
  let at = HEADER_BYTES
  for (const index of indexes) {
    const word = encoded[index]
    if (word === undefined) throw new RangeError(`There is no word ${index}`)
    view.setInt32(at, word.length)
    array.set(word, at + 4)
    at += 4 + word.length
  }
  return array
}

/** Returns an array of elements of `size` bytes each, which `put` writes. */
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
