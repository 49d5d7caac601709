import { hash } from 'node:crypto'

import { expect, test } from 'vitest'

import { MAX_PATH_LENGTH, Tree } from '../../src/answers/merkle.ts'

const sha256 = (bytes: Uint8Array): Buffer => hash('sha256', bytes, 'buffer')
const leaf = (n: number): Buffer => sha256(Buffer.from(`leaf ${n}`))

// One tree is built again and again, as in a validator.
const tree = new Tree()

/** Builds the tree, and returns its texts as bytes. The paths begin at all remainders of 4. */
function bytesOf(leaves: readonly Buffer[]): { root: Buffer; paths: Buffer[] } {
  const root = tree.build(leaves.map((each) => each.toString('latin1')))
  const out = Buffer.alloc(MAX_PATH_LENGTH + 4)
  const view = new DataView(out.buffer, out.byteOffset, out.length)
  const paths = leaves.map((_, n) => out.toString('latin1', n % 4, tree.writePath(n, view, n % 4)))
  return { root: Buffer.from(root, 'base64url'), paths: paths.map((path) => Buffer.from(path, 'base64url')) }
}

/** Climbs from a leaf to the root as a client does. */
function climb(from: Buffer, path: Buffer): Buffer {
  let node = from
  for (let at = 0; at < path.length; at += 33) {
    const neighbour = path.subarray(at + 1, at + 33)
    node = sha256(Buffer.concat([Buffer.of(1), ...(path[at] === 0 ? [node, neighbour] : [neighbour, node])]))
  }
  return node
}

test('the tree of one leaf is the leaf, with an empty path', () => {
  expect(bytesOf([leaf(1)])).toEqual({ root: leaf(1), paths: [Buffer.alloc(0)] })
})

test('the third of three leaves moves up without a step', () => {
  const [a, b, c] = [leaf(1), leaf(2), leaf(3)]
  const ab = sha256(Buffer.concat([Buffer.of(1), a, b]))
  const { root, paths } = bytesOf([a, b, c])
  expect(root).toEqual(sha256(Buffer.concat([Buffer.of(1), ab, c])))
  expect(paths[2]).toEqual(Buffer.concat([Buffer.of(1), ab]))
  expect(paths[0]).toEqual(Buffer.concat([Buffer.of(0), b, Buffer.of(0), c]))
})

test('in a tree of 1 to 64 leaves, every path leads from its own leaf to the root', () => {
  const all = Array.from({ length: 64 }, (_, n) => leaf(n))
  for (const count of all.keys()) {
    const leaves = all.slice(0, count + 1)
    const { root, paths } = bytesOf(leaves)
    const climbed = leaves.map((own, n) => climb(own, paths[n]!))
    expect(climbed).toEqual(leaves.map(() => root))
    expect(Math.max(...paths.map(({ length }) => length))).toBeLessThanOrEqual(6 * 33)
    const swapped = leaves.map((_, n) => climb(leaf(n + 64), paths[n]!))
    expect(swapped.filter((top) => top.equals(root))).toEqual([])
    const long = paths.findIndex(({ length }) => length >= 66)
    if (long < 0) continue
    const path = paths[long]!
    const reordered = Buffer.concat([path.subarray(33, 66), path.subarray(0, 33), path.subarray(66)])
    expect(climb(leaves[long]!, reordered)).not.toEqual(root)
  }
})
