/**
 * Tries over IP prefixes, one for each scope and address family, all in one slab of nodes. They are path-compressed
 * multibit tries with a stride of four bits. As in a Patricia trie, a node skips the bits that are equal in all
 * prefixes below it, and then branches on four bits. A trie of a million prefixes is six or seven nodes deep. A prefix
 * that ends within a node's four bits is stored in the node, at its index in a complete binary tree (the base index of
 * the ART algorithm by Hariguchi and Knuth). No prefix is copied into longer ones, so a search finds every prefix that
 * covers an address.
 *
 *   node (128 bytes)  | 16 children, by the next four bits | depth | 15 rules that end within these four bits |
 *                                                            base index: 1 for no bit, 2 + b for one bit b,
 *                                                            4 + bb for two bits, 8 + bbb for three bits
 *
 * A child or a root is a node (above 0), a single rule (the complement of its row, below 0), or empty (0). A search
 * compares the address with the network in the rule's record, because it has not compared the skipped bits. Rules with
 * the same network are linked by RULE_NEXT, and the trie refers to the first of them.
 */

import {
  NODE_CHILDREN,
  NODE_DEPTH,
  NODE_ENDS,
  NODE_WORDS,
  ROW_WORDS,
  RULE_TRAITS,
  RULE_VALUE,
  rulePrefixLength,
  ruleType,
  TYPE_IP4,
} from './layout.ts'

/** The maximum number of nodes on a path: one for each four bits of 128, and one more. */
export const MAX_PATH = 33
/**
 * The maximum number of rules that a search returns, even during a concurrent write: four for each node, and one more.
 */
export const MAX_COVERS = 4 * MAX_PATH + 1

/**
 * Finds the networks of a trie that contain an address (big-endian words, IPv4 in `a0` alone). Writes the first rule of
 * each network to `out`, the shortest prefix first, and returns their number. `out` must have at least MAX_COVERS
 * elements.
 */
export function findCovers(
  nodes: Int32Array,
  rules: Int32Array,
  root: number,
  a0: number,
  a1: number,
  a2: number,
  a3: number,
  out: Int32Array,
): number {
  let count = 0
  let child = root
  for (let steps = 0; child > 0 && steps < MAX_PATH; steps++) {
    const base = child * NODE_WORDS
    const depth = nodes[base + NODE_DEPTH]!
    const word = depth < 16 ? (depth < 8 ? a0 : a1) : depth < 24 ? a2 : a3
    const bits = (word >>> (28 - ((depth & 7) << 2))) & 15
    const ends = base + NODE_ENDS - 1 // base indexes start at 1
    const zero = nodes[ends + 1]!
    const one = nodes[ends + 2 + (bits >>> 3)]!
    const two = nodes[ends + 4 + (bits >>> 2)]!
    const three = nodes[ends + 8 + (bits >>> 1)]!
    if ((zero | one | two | three) !== 0) {
      if (zero !== 0 && covers(rules, zero, a0, a1, a2, a3)) out[count++] = zero
      if (one !== 0 && covers(rules, one, a0, a1, a2, a3)) out[count++] = one
      if (two !== 0 && covers(rules, two, a0, a1, a2, a3)) out[count++] = two
      if (three !== 0 && covers(rules, three, a0, a1, a2, a3)) out[count++] = three
    }
    child = nodes[base + NODE_CHILDREN + bits]!
  }
  if (child < 0 && covers(rules, ~child, a0, a1, a2, a3)) out[count++] = ~child
  return count
}

/** Returns whether a rule's network contains the address. */
function covers(rules: Int32Array, row: number, a0: number, a1: number, a2: number, a3: number): boolean {
  const base = row * ROW_WORDS
  const traits = rules[base + RULE_TRAITS]!
  const length = rulePrefixLength(traits)
  const value = base + RULE_VALUE
  if (ruleType(traits) === TYPE_IP4 || length <= 32) return sameBits(rules[value]!, a0, length)
  if (rules[value] !== a0) return false
  if (length <= 64) return sameBits(rules[value + 1]!, a1, length - 32)
  if (rules[value + 1] !== a1) return false
  if (length <= 96) return sameBits(rules[value + 2]!, a2, length - 64)
  return rules[value + 2] === a2 && sameBits(rules[value + 3]!, a3, length - 96)
}

/** Returns whether the first `length` bits (0 to 32) of two words are equal. */
function sameBits(a: number, b: number, length: number): boolean {
  return length === 0 || (a ^ b) >>> (32 - length) === 0
}
