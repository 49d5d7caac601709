/**
 * Inserts rules into a trie and removes them. Invariant: every node has at least two entries (children, or rules that
 * end in it). So a trie of n networks has fewer than n nodes, and an insertion adds at most one node. A network of
 * length L belongs to the node of depth ⌊L / 4⌋ on its path. If there is no such node, the rule itself is a child.
 */

import {
  NODE_CHILDREN,
  NODE_DEPTH,
  NODE_ENDS,
  NODE_WORDS,
  ROW_WORDS,
  RULE_NEXT,
  RULE_TRAITS,
  RULE_VALUE,
  rulePrefixLength,
} from '../memory/layout.ts'
import { MAX_PATH } from '../memory/prefix-trie.ts'
import type { Region } from '../memory/shared-memory.ts'
import type { Slab } from '../memory/slab.ts'

export class TrieWriter {
  readonly #nodes: Slab
  readonly #rules: Region

  constructor(nodes: Slab, rules: Region) {
    this.#nodes = nodes
    this.#rules = rules
  }

  /**
   * Inserts a rule into the trie whose root is the word `slot` of `root`. The rule's record must already contain its
   * value and traits.
   */
  insert(root: Region, slot: number, rule: number): void {
    const home = this.#homeOf(rule)
    let words = root
    let at = slot
    for (let steps = 0; steps < 2 * MAX_PATH; steps++) {
      const child = words.get(at)
      if (child === 0) {
        words.set(at, ~rule)
        return
      }
      const sample = this.#anyRuleBelow(child)
      if (child < 0 && this.#sameNetwork(sample, rule)) {
        this.#push(words, at, rule, true)
        return
      }
      const reach = child < 0 ? this.#homeOf(sample) : this.#depthOf(child)
      const depth = Math.min(home, reach, this.#firstDifference(sample, rule))
      if (child < 0 || depth < reach) {
        words.set(at, this.#nodeAbove(child, sample, depth))
      } else if (depth === home) {
        this.#push(this.#nodes.region, this.#endOf(child, rule), rule, false)
        return
      } else {
        words = this.#nodes.region
        at = child * NODE_WORDS + NODE_CHILDREN + this.#bitsAt(rule, depth)
      }
    }
    throw new Error('The trie is deeper than an address is long.')
  }

  /** Removes a rule from the trie, and frees a node that has only one entry left. */
  remove(root: Region, slot: number, rule: number): void {
    const nodeWords = this.#nodes.region
    const home = this.#homeOf(rule)
    let words = root
    let at = slot
    let parent = -1
    let parentWords = root
    for (let steps = 0; steps < MAX_PATH; steps++) {
      const child = words.get(at)
      if (child <= 0) {
        this.#pull(words, at, rule, true)
        break
      }
      parentWords = words
      parent = at
      words = nodeWords
      if (this.#depthOf(child) === home) {
        at = this.#endOf(child, rule)
        this.#pull(words, at, rule, false)
        break
      }
      at = child * NODE_WORDS + NODE_CHILDREN + this.#bitsAt(rule, this.#depthOf(child))
    }
    if (parent >= 0 && words.get(at) === 0) this.#collapse(parentWords, parent)
  }

  /**
   * Inserts a rule before the other rules of its network. With `complement`, the word is a child and contains the complement of the rule.
   */
  #push(words: Region, at: number, rule: number, complement: boolean): void {
    const first = complement ? ~words.get(at) : words.get(at)
    this.#rules.set(rule * ROW_WORDS + RULE_NEXT, first)
    words.set(at, complement ? ~rule : rule)
  }

  /** Removes a rule from the list of its network. `complement` has the same meaning as in `#push`. */
  #pull(words: Region, at: number, rule: number, complement: boolean): void {
    const rules = this.#rules
    const next = rules.get(rule * ROW_WORDS + RULE_NEXT)
    rules.set(rule * ROW_WORDS + RULE_NEXT, 0)
    let before = complement ? ~words.get(at) : words.get(at)
    if (before === rule) {
      words.set(at, next === 0 || !complement ? next : ~next)
      return
    }
    while (rules.get(before * ROW_WORDS + RULE_NEXT) !== rule) before = rules.get(before * ROW_WORDS + RULE_NEXT)
    rules.set(before * ROW_WORDS + RULE_NEXT, next)
  }

  /** Creates a node at `depth` with `child` as its only entry. The caller must add another entry. `sample` is any rule below `child`. */
  #nodeAbove(child: number, sample: number, depth: number): number {
    const node = this.#nodes.allocate()
    const words = this.#nodes.region
    words.set(node * NODE_WORDS + NODE_DEPTH, depth)
    if (child < 0 && this.#homeOf(sample) === depth) words.set(this.#endOf(node, sample), ~child)
    else words.set(node * NODE_WORDS + NODE_CHILDREN + this.#bitsAt(sample, depth), child)
    return node
  }

  /** Replaces a node that has only one entry left with that entry. */
  #collapse(words: Region, at: number): void {
    const node = words.get(at)
    const left = this.#entryOf(node, 0)
    if (this.#entryOf(node, 1) !== 0) return
    words.set(at, left)
    this.#nodes.free(node)
  }

  /** Returns the `n`-th entry of a node, counted from 0, in the form of a child. Returns 0 when the node has fewer entries. */
  #entryOf(node: number, n: number): number {
    const { region } = this.#nodes
    let left = n
    // The children and the ends are in one line each.
    const children = region.locate(node * NODE_WORDS + NODE_CHILDREN)
    for (let at = children; at < children + NODE_DEPTH; at++) {
      if (region.located[at] !== 0 && left-- === 0) return region.located[at]!
    }
    const depth = region.locate(node * NODE_WORDS + NODE_DEPTH)
    for (let at = depth + 1; at < depth + NODE_WORDS - NODE_DEPTH; at++) {
      if (region.located[at] !== 0 && left-- === 0) return ~region.located[at]!
    }
    return 0
  }

  /** Returns any rule below a child. All of these rules agree in the bits above the child. */
  #anyRuleBelow(child: number): number {
    let below = child
    for (let steps = 0; below > 0 && steps < MAX_PATH; steps++) below = this.#entryOf(below, 0)
    return ~below
  }

  /** Returns the index of a node's word for a rule that ends in the node. */
  #endOf(node: number, rule: number): number {
    const length = this.#lengthOf(rule) & 3
    const bits = length === 0 ? 0 : this.#bitsAt(rule, this.#homeOf(rule)) >>> (4 - length)
    return node * NODE_WORDS + NODE_ENDS - 1 + (1 << length) + bits
  }

  #depthOf(node: number): number {
    return this.#nodes.region.get(node * NODE_WORDS + NODE_DEPTH)
  }

  /** Returns the depth of the node that a rule ends in. */
  #homeOf(rule: number): number {
    return this.#lengthOf(rule) >>> 2
  }

  #lengthOf(rule: number): number {
    return rulePrefixLength(this.#rules.get(rule * ROW_WORDS + RULE_TRAITS))
  }

  /** Returns the four bits of a rule's network at a depth. */
  #bitsAt(rule: number, depth: number): number {
    return (this.#rules.get(rule * ROW_WORDS + RULE_VALUE + (depth >>> 3)) >>> (28 - ((depth & 7) << 2))) & 15
  }

  /** Returns the depth of the first four bits in which two networks differ, or MAX_PATH when they are equal. */
  #firstDifference(rule: number, other: number): number {
    const words = this.#rules
    for (let i = 0; i < 4; i++) {
      const difference = words.get(rule * ROW_WORDS + RULE_VALUE + i) ^ words.get(other * ROW_WORDS + RULE_VALUE + i)
      if (difference !== 0) return 8 * i + (Math.clz32(difference) >>> 2)
    }
    return MAX_PATH
  }

  #sameNetwork(rule: number, other: number): boolean {
    return this.#lengthOf(rule) === this.#lengthOf(other) && this.#firstDifference(rule, other) === MAX_PATH
  }
}
