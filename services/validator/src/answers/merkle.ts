/**
 * Builds a Merkle tree over the hashes of responses, and the path from each of them to the root (docs/api.md#g4). A node without a
 * neighbour moves up unchanged.
 */

import { hash } from 'node:crypto'

/** The value of the side in a step: the place of the neighbour. */
const RIGHT = 0
const LEFT = 1
/** The byte before the children of an inner node, so that no inner node equals a leaf. */
const INNER = 1

const HASH_BYTES = 32
const STEP_BYTES = 1 + HASH_BYTES

export interface Tree {
  root: Buffer
  /** The path of each leaf: steps of 33 bytes, each a side and the hash of the neighbour. */
  paths: Buffer[]
}

/** Returns the tree over one or more hashes. */
export function treeOf(leaves: readonly Buffer[]): Tree {
  const paths: Buffer[][] = leaves.map(() => [])
  let level = leaves
  for (let span = 1; level.length > 1; span *= 2) {
    const next: Buffer[] = []
    for (let i = 0; i < level.length; i += 2) {
      const left = level[i]!
      const right = level[i + 1]
      next.push(right === undefined ? left : parentOf(left, right))
      if (right === undefined) continue
      const start = i * span
      const middle = start + span
      const end = Math.min(middle + span, leaves.length)
      const toRight = step(RIGHT, right)
      const toLeft = step(LEFT, left)
      for (let leaf = start; leaf < end; leaf++) paths[leaf]!.push(leaf < middle ? toRight : toLeft)
    }
    level = next
  }
  return { root: level[0]!, paths: paths.map((steps) => Buffer.concat(steps)) }
}

function step(side: number, neighbour: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(STEP_BYTES)
  bytes[0] = side
  neighbour.copy(bytes, 1)
  return bytes
}

function parentOf(left: Buffer, right: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(1 + 2 * HASH_BYTES)
  bytes[0] = INNER
  left.copy(bytes, 1)
  right.copy(bytes, 1 + HASH_BYTES)
  return sha256(bytes)
}

/** Returns the SHA-256 of bytes, or of the UTF-8 bytes of a text. Node creates a string of the hash in half of the time of a buffer. */
export function sha256(data: string | Uint8Array): Buffer {
  return Buffer.from(hash('sha256', data, 'binary'), 'binary')
}
