import { ROW_WORDS, RULE_NEXT, RULE_TRAITS, RULE_VALUE, rulePrefixLength } from '../memory/layout.ts'
import { MAX_PATH, NODE_DEPTH, NODE_WORDS } from '../memory/prefix-trie.ts'
import type { Region } from '../memory/shared-memory.ts'
/**
 * Inserting rules into a trie and removing them. Invariant: every node holds at least two things (children or rules
 * that end in it), so a trie of n networks has fewer than n nodes, and each insertion makes at most one. A network of
 * length L belongs in the node at depth L / 4, if there is one on its path; else it hangs alone as a child.
 */
import type { Arena } from '../memory/slab.ts'

export class PrefixTrieWriter {
  private readonly nodes: Arena
  private readonly rules: Region

  constructor(nodes: Arena, rules: Region) {
    this.nodes = nodes
    this.rules = rules
  }

  /** Hangs the rule into the trie whose root is the word `slot` of `root`; its value and traits are in its record. */
  insert(root: Int32Array, slot: number, rule: number): void {
    const home = this.homeOf(rule)
    let words = root
    let at = slot
    for (let steps = 0; steps < 2 * MAX_PATH; steps++) {
      const child = words[at]!
      if (child === 0) {
        words[at] = ~rule
        return
      }
      const sample = this.anyRuleBelow(child)
      if (child < 0 && this.sameNetwork(sample, rule)) {
        this.push(words, at, rule, true)
        return
      }
      const reach = child < 0 ? this.homeOf(sample) : this.depthOf(child)
      const depth = Math.min(home, reach, this.firstDifference(sample, rule))
      if (child < 0 || depth < reach) {
        words[at] = this.nodeAbove(child, sample, depth)
      } else if (depth === home) {
        this.push(this.nodes.region.words, this.endOf(child, rule), rule, false)
        return
      } else {
        words = this.nodes.region.words
        at = child * NODE_WORDS + this.bitsAt(rule, depth)
      }
    }
    throw new Error('a trie is deeper than an address is long')
  }

  /** Takes the rule out of the trie; an emptied node goes back to the pool. */
  remove(root: Int32Array, slot: number, rule: number): void {
    const nodeWords = this.nodes.region.words
    const home = this.homeOf(rule)
    let words = root
    let at = slot
    let parent = -1
    let parentWords = root
    for (let steps = 0; steps < MAX_PATH; steps++) {
      const child = words[at]!
      if (child <= 0) {
        this.pull(words, at, rule, true)
        break
      }
      parentWords = words
      parent = at
      words = nodeWords
      if (this.depthOf(child) === home) {
        at = this.endOf(child, rule)
        this.pull(words, at, rule, false)
        break
      }
      at = child * NODE_WORDS + this.bitsAt(rule, this.depthOf(child))
    }
    if (parent >= 0 && words[at] === 0) this.collapse(parentWords, parent)
  }

  /** Puts a rule before the others of its network. `complement`: the word is a child, not a rule that ends in a node. */
  private push(words: Int32Array, at: number, rule: number, complement: boolean): void {
    const first = complement ? ~words[at]! : words[at]!
    this.rules.words[rule * ROW_WORDS + RULE_NEXT] = first
    words[at] = complement ? ~rule : rule
  }

  private pull(words: Int32Array, at: number, rule: number, complement: boolean): void {
    const { words: rules } = this.rules
    const next = rules[rule * ROW_WORDS + RULE_NEXT]!
    rules[rule * ROW_WORDS + RULE_NEXT] = 0
    let before = complement ? ~words[at]! : words[at]!
    if (before === rule) {
      words[at] = next === 0 || !complement ? next : ~next
      return
    }
    while (rules[before * ROW_WORDS + RULE_NEXT] !== rule) before = rules[before * ROW_WORDS + RULE_NEXT]!
    rules[before * ROW_WORDS + RULE_NEXT] = next
  }

  /** A new node at `depth` that holds `child` alone for the moment. */
  private nodeAbove(child: number, sample: number, depth: number): number {
    const node = this.nodes.allocate()
    const { words } = this.nodes.region
    words[node * NODE_WORDS + NODE_DEPTH] = depth
    if (child < 0 && this.homeOf(sample) === depth) words[this.endOf(node, sample)] = ~child
    else words[node * NODE_WORDS + this.bitsAt(sample, depth)] = child
    return node
  }

  /** Replaces a node by the one thing left in it, if it is only one. */
  private collapse(words: Int32Array, at: number): void {
    const node = words[at]!
    const nodeWords = this.nodes.region.words
    const base = node * NODE_WORDS
    let left = 0
    for (let i = 0; i < NODE_WORDS; i++) {
      const word = i === NODE_DEPTH ? 0 : nodeWords[base + i]!
      if (word === 0) continue
      if (left !== 0) return
      left = i < NODE_DEPTH ? word : ~word
    }
    words[at] = left
    this.nodes.free(node)
  }

  private anyRuleBelow(child: number): number {
    const { words } = this.nodes.region
    let below = child
    for (let steps = 0; below > 0 && steps < MAX_PATH; steps++) {
      const base = below * NODE_WORDS
      let i = 0
      while (i === NODE_DEPTH || words[base + i] === 0) i++
      below = i < NODE_DEPTH ? words[base + i]! : ~words[base + i]!
    }
    return ~below
  }

  /** The place in a node for a rule that ends in it. */
  private endOf(node: number, rule: number): number {
    const length = this.lengthOf(rule) & 3
    const bits = length === 0 ? 0 : this.bitsAt(rule, this.homeOf(rule)) >>> (4 - length)
    return node * NODE_WORDS + NODE_DEPTH + (1 << length) + bits
  }

  private depthOf(node: number): number {
    return this.nodes.region.words[node * NODE_WORDS + NODE_DEPTH]!
  }

  private homeOf(rule: number): number {
    return this.lengthOf(rule) >>> 2
  }

  private lengthOf(rule: number): number {
    return rulePrefixLength(this.rules.words[rule * ROW_WORDS + RULE_TRAITS]!)
  }

  /** The four bits of the rule's network at a depth. */
  private bitsAt(rule: number, depth: number): number {
    return (this.rules.words[rule * ROW_WORDS + RULE_VALUE + (depth >>> 3)]! >>> (28 - ((depth & 7) << 2))) & 15
  }

  /** The depth of the first four bits in which two networks differ, beyond every depth when they do not. */
  private firstDifference(rule: number, other: number): number {
    const { words } = this.rules
    for (let i = 0; i < 4; i++) {
      const difference = words[rule * ROW_WORDS + RULE_VALUE + i]! ^ words[other * ROW_WORDS + RULE_VALUE + i]!
      if (difference !== 0) return 8 * i + (Math.clz32(difference) >>> 2)
    }
    return MAX_PATH
  }

  private sameNetwork(rule: number, other: number): boolean {
    return this.lengthOf(rule) === this.lengthOf(other) && this.firstDifference(rule, other) === MAX_PATH
  }
}
