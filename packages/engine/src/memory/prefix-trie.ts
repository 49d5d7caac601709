/**
 * Tries over address prefixes, one for each scope and family, all in one pool of nodes. A node looks at four bits at
 * once and skips the bits in which everything below it agrees, so that a million prefixes are six or seven nodes deep.
 *
 *   node (128 bytes)  | 16 children, by the next four bits | depth | 15 rules that end inside these four bits |
 *                                                            the rule of 0 bits at 1, of one bit b at 2 + b,
 *                                                            of two bits at 4 + bb, of three bits at 8 + bbb
 *
 * A child, and a root, is a node (above 0), a rule alone in its part of the trie (the complement of its row, below 0),
 * or nothing (0). A rule's network stands in its own record, and a search compares there, since skipped bits were
 * never looked at. Rules with the same network hang together by RULE_NEXT; the trie knows the first.
 */
import { ROW_WORDS, RULE_TRAITS, RULE_VALUE, rulePrefixLength, ruleType, TYPE_IP4 } from './layout.ts'

export const NODE_WORDS = 32
export const NODE_DEPTH = 16
/** Nodes on a path: one for each four bits of 128, and one more. */
export const MAX_PATH = 33
/** No address is covered by more networks: one for each prefix length, 0 to 128, and some that torn memory may add. */
export const MAX_COVERS = 4 * MAX_PATH + 1

/**
 * Finds all networks of a trie that cover an address: writes the first rule of each into `out` (at least MAX_COVERS
 * long) and gives their number, the shortest prefix first.
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
    const here = base + NODE_DEPTH
    const zero = nodes[here + 1]!
    const one = nodes[here + 2 + (bits >>> 3)]!
    const two = nodes[here + 4 + (bits >>> 2)]!
    const three = nodes[here + 8 + (bits >>> 1)]!
    if ((zero | one | two | three) !== 0) {
      if (zero !== 0 && covers(rules, zero, a0, a1, a2, a3)) out[count++] = zero
      if (one !== 0 && covers(rules, one, a0, a1, a2, a3)) out[count++] = one
      if (two !== 0 && covers(rules, two, a0, a1, a2, a3)) out[count++] = two
      if (three !== 0 && covers(rules, three, a0, a1, a2, a3)) out[count++] = three
    }
    child = nodes[base + bits]!
  }
  if (child < 0 && covers(rules, ~child, a0, a1, a2, a3)) out[count++] = ~child
  return count
}

/** True when the network of a rule contains the address. */
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

/** The first `length` bits (0 to 32) of two words agree. */
function sameBits(a: number, b: number, length: number): boolean {
  return length === 0 || (a ^ b) >>> (32 - length) === 0
}
