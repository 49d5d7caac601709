/**
 * A trie over address prefixes of one scope; all tries share one pool of nodes. A node looks at four bits at once and
 * skips the bits in which everything below it agrees.
 *
 *   node (128 bytes)  | 16 children, by the next four bits | depth | 15 rules that end inside these four bits |
 *                                                            the rule of 0 bits at 1, of one bit b at 2 + b,
 *                                                            of two bits at 4 + bb, of three bits at 8 + bbb
 *
 * A child, and a root, is a node (above 0), a rule alone in its part of the trie (the complement of its row, below 0),
 * or nothing (0). A rule's network and scope stand in its own record, and a search compares them there, since skipped
 * bits were never looked at. Rules with the same network hang together by RULE_NEXT; the trie knows the first.
 */
import { ROW_WORDS, RULE_SCOPE, RULE_TRAITS, RULE_VALUE, rulePrefixLength, ruleType, TYPE_IP4 } from './records.ts'

export const NODE_WORDS = 32
export const NODE_DEPTH = 16
/** Nodes on a path: one for each four bits of 128, and one more. */
export const MAX_PATH = 33
/** What one search may find, however torn the memory is: four rules a node, and a rule alone. */
export const MAX_COVERS = 4 * MAX_PATH + 1

/** An address in big-endian words, signed or unsigned; IPv4 fills the first alone. */
export interface AddressWords {
  readonly a0: number
  readonly a1: number
  readonly a2: number
  readonly a3: number
}

/**
 * Finds all networks of a scope in a trie that cover an address: writes the first rule of each into `out` from `from` on
 * (MAX_COVERS at most), the shortest prefix first, and gives where they end.
 */
export function findCovers(
  nodes: Int32Array,
  rules: Int32Array,
  root: number,
  scope: number,
  address: AddressWords,
  out: Int32Array,
  from: number,
): number {
  const a0 = address.a0 | 0
  const a1 = address.a1 | 0
  const a2 = address.a2 | 0
  const a3 = address.a3 | 0
  let count = from
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
      if (zero !== 0 && covers(rules, zero, scope, a0, a1, a2, a3)) out[count++] = zero
      if (one !== 0 && covers(rules, one, scope, a0, a1, a2, a3)) out[count++] = one
      if (two !== 0 && covers(rules, two, scope, a0, a1, a2, a3)) out[count++] = two
      if (three !== 0 && covers(rules, three, scope, a0, a1, a2, a3)) out[count++] = three
    }
    child = nodes[base + bits]!
  }
  if (child < 0 && covers(rules, ~child, scope, a0, a1, a2, a3)) out[count++] = ~child
  return count
}

/** True when the rule is one of the scope and its network contains the address. */
function covers(
  rules: Int32Array,
  row: number,
  scope: number,
  a0: number,
  a1: number,
  a2: number,
  a3: number,
): boolean {
  const base = row * ROW_WORDS
  if (rules[base + RULE_SCOPE] !== scope) return false
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
