/**
 * Builds a Merkle tree over the hashes of responses, and writes the path from each of them to the root (docs/api.md#g4). A node without a
 * neighbour moves up unchanged.
 */

import { hash } from 'node:crypto'

/** The maximum number of leaves. It bounds the length of a path. */
export const MAX_LEAVES = 64

/** The value of the side in a step: the place of the neighbour. */
const RIGHT = 0
const LEFT = 1
/** The byte before the children of an inner node, so that no inner node equals a leaf. */
const INNER = 1

const HASH_BYTES = 32
/** The length of a step in base64url. A step has 33 bytes, so it ends at a boundary of base64, and a path is the texts of its steps. */
const STEP_LENGTH = 44
/** The maximum length of a path in base64url. */
export const MAX_PATH_LENGTH = Math.log2(MAX_LEAVES) * STEP_LENGTH

const ALPHABET = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_')
/** The two base64url characters of each number of 12 bits, the first one in the lower byte. */
const CHARACTERS = Uint16Array.from({ length: 4096 }, (_, n) => ALPHABET[n >> 6]! | (ALPHABET[n & 63]! << 8))

// The memory of one inner node, and of three bytes that are read after it and not used. The functions of this module never wait, so they can
// share it.
const memory = Buffer.alloc(1 + 2 * HASH_BYTES + 3, INNER)
const inner = memory.subarray(0, 1 + 2 * HASH_BYTES)

/** A tree over at most MAX_LEAVES hashes, which are strings with a character for each byte. */
export class Tree {
  /** The index of the first node and the number of nodes of each level below the root. */
  readonly #levels: { first: number; count: number }[] = []
  /** The step past each node, in base64url. Several leaves share it. */
  readonly #steps = new DataView(new ArrayBuffer(2 * MAX_LEAVES * STEP_LENGTH))

  /** Builds the tree over one or more leaves. Returns the root in base64url. */
  build(leaves: readonly string[]): string {
    this.#levels.length = 0
    let level = leaves
    for (let first = 0; level.length > 1;) {
      this.#levels.push({ first, count: level.length })
      const next: string[] = []
      for (let i = 0; i < level.length; i += 2) {
        const [left, right] = [level[i]!, level[i + 1]]
        next.push(right === undefined ? left : this.#join(left, right, first + i))
      }
      first += level.length
      level = next
    }
    return Buffer.from(level[0]!, 'latin1').toString('base64url')
  }

  /** Writes the path of a leaf in base64url at `at`. Returns the end of the path. */
  writePath(leaf: number, out: DataView, at: number): number {
    let [node, end] = [leaf, at]
    for (const { first, count } of this.#levels) {
      const neighbour = node ^ 1
      if (neighbour < count) {
        const step = (first + neighbour) * STEP_LENGTH
        for (let i = 0; i < STEP_LENGTH; i += 4) out.setInt32(end + i, this.#steps.getInt32(step + i))
        end += STEP_LENGTH
      }
      node >>= 1
    }
    return end
  }

  /** Returns the parent of two nodes, and writes the steps past them. `node` is the index of the left one. */
  #join(left: string, right: string, node: number): string {
    // A call of `write` takes five times as long as the loop.
    for (let i = 0; i < HASH_BYTES; i++) {
      memory[1 + i] = left.charCodeAt(i)
      memory[1 + HASH_BYTES + i] = right.charCodeAt(i)
    }
    this.#writeStep(node, LEFT, 1)
    this.#writeStep(node + 1, RIGHT, 1 + HASH_BYTES)
    return sha256(inner)
  }

  /** Writes the step past a node, whose hash is in `memory` at `from`. */
  #writeStep(node: number, side: number, from: number): void {
    const start = node * STEP_LENGTH
    let three = (side << 16) | (memory[from]! << 8) | memory[from + 1]!
    for (let i = 0; i < STEP_LENGTH; i += 4) {
      const next = from + 2 + (i / 4) * 3
      this.#steps.setInt32(start + i, CHARACTERS[three >> 12]! | (CHARACTERS[three & 4095]! << 16), true)
      three = (memory[next]! << 16) | (memory[next + 1]! << 8) | memory[next + 2]!
    }
  }
}

/** Returns the SHA-256 of bytes, or of the UTF-8 bytes of a text, as a string with a character for each byte. */
export function sha256(data: string | Uint8Array): string {
  return hash('sha256', data, 'binary')
}
