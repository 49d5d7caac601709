/**
 * The layout of the index's records: which field is in which word. `LAYOUT` declares every record. The constants after
 * it repeat the offsets as literals for the hot path, and a test compares the two. To add a field, take bits or words
 * from a `spare` field and declare a constant for their offset.
 *
 * Most records have 16 words, one cache line, so that a check reads one line for its license. Fields that only some licenses have are in a
 * license extension, a record in a separate slab, so they cost the other licenses no memory and no time. A longer license record would
 * cost memory and time for every license. A hash table from license to extension would cost a cache miss for each license with an
 * extension. So the license record contains the row of the extension. To make space for that word, the hash of the
 * license key has 96 bits instead of 128. Among 2^24 licenses, the probability that an unknown key has the hash of a license is 2^-72.
 * Likewise, only the first 224 bits of the SHA-256 of a secret are stored and compared, which leaves one word for another field.
 */

import type { RESTRICTION_TYPES } from '../model.ts'

/**
 * The sizes of a record's fields in words, in order. A word that is divided has an object with the sizes of its fields in bits, lowest
 * first.
 */
type RecordLayout = Readonly<Record<string, number | Readonly<Record<string, number>>>>

export const LAYOUT = {
  organization: {
    id: 4,
    generation: 1,
    flags: { mark: 1, spare: 31 },
    scope: 1,
    children: 1,
    addressRules: 1,
    spare: 7,
  },
  product: {
    id: 4,
    generation: 1,
    flags: { mark: 1, spare: 31 },
    scope: 1,
    children: 1,
    organization: 1,
    entitlements: 1,
    spare: 6,
  },
  customer: {
    id: 4,
    generation: 1,
    flags: { mark: 1, spare: 31 },
    children: 1,
    organization: 1,
  },
  credential: {
    id: 4,
    generation: 1,
    secret: 7,
    product: 1,
    state: { mark: 1, spare: 1, organization: 30 },
    expiry: 2,
  },
  license: {
    id: 4,
    generation: 1,
    keyHash: 3,
    extension: 1,
    product: 1,
    customer: 1,
    max: 1,
    used: 1,
    state: { mark: 1, status: 2, leased: 1, graced: 1, spare: 3, scope: 24 },
    expiry: 2,
  },
  extension: {
    license: 1,
    entitlements: 1,
    leaseSeconds: 1,
    graceDays: 1,
    spare: 4,
  },
  value: {
    references: 1,
    length: 1,
    next: 1,
    hash: 1,
    generation: 1,
    data: 11,
  },
  valueBlock: {
    next: 1,
    data: 15,
  },
  rule: {
    id: 4,
    generation: 1,
    value: 4,
    spare: 1,
    scope: 1,
    organization: 1,
    next: 1,
    traits: {
      mark: 1,
      exclusion: 1,
      allow: 1,
      type: 3,
      prefix: 8,
      restriction: 1,
      monitor: 1,
      hollow: 1,
      dormant: 1,
      spare: 14,
    },
    expiry: 2,
  },
  scope: {
    ownerKind: 1,
    owner: 1,
    rules: 1,
    root4: 1,
    root6: 1,
    counts: 3,
    spare: 2,
    restrictedUntil: 6,
  },
  node: {
    children: 16,
    depth: 1,
    ends: 15,
  },
} as const satisfies Record<string, RecordLayout>

/** The size of a record in words, unless a constant below gives another size. */
export const ROW_WORDS = 16
export const CUSTOMER_WORDS = 8
export const EXTENSION_WORDS = 8
export const NODE_WORDS = 32

// These fields have the same place in records of several kinds.
/** The UUID, as big-endian words. */
export const ID = 0
/** The generation of the row, 0 in a free row. A generation is repeated only after all 2^32 - 1 generations have been used. */
export const GENERATION = 4
/**
 * The offset of `expiresAtMs`, a double, counted in doubles from the record's start. For a license, the double is the end of the grace
 * period, which equals `expiresAtMs` without one.
 */
export const EXPIRY = 7
export const ROW_DOUBLES = 8
/** The mark of the last reload that received the row: bit 0 of the record's flags, state or traits. */
export const MARK = 1

export const ORGANIZATION_FLAGS = 5
/** Row of the scope record, 0 when no rule has the organization as its scope. Records of products and licenses have a similar field. */
export const ORGANIZATION_SCOPE = 6
/** The number of rows that refer to this row. */
export const ORGANIZATION_CHILDREN = 7
/** The number of the organization's rules, in any scope, that depend on the address or the country. */
export const ORGANIZATION_ADDRESS_RULES = 8

export const PRODUCT_FLAGS = 5
export const PRODUCT_SCOPE = 6
export const PRODUCT_CHILDREN = 7
export const PRODUCT_ORGANIZATION = 8
/** Row of the value with the default entitlements, 0 when the product has none. */
export const PRODUCT_ENTITLEMENTS = 9

export const CUSTOMER_FLAGS = 5
export const CUSTOMER_CHILDREN = 6
export const CUSTOMER_ORGANIZATION = 7

/** The first words of the secret's SHA-256. */
export const CREDENTIAL_SECRET = 5
export const CREDENTIAL_SECRET_WORDS = 7
/** Row of the product that the credential is bound to, 0 when it is bound to none. */
export const CREDENTIAL_PRODUCT = 12
export const CREDENTIAL_STATE = 13
export const CREDENTIAL_ORGANIZATION_SHIFT = 2

/** The first words of the license key's hash, which `bindKey` binds to the organization. */
export const LICENSE_KEY_HASH = 5
export const LICENSE_KEY_HASH_WORDS = 3
/** Row of the extension, 0 when there is none. */
export const LICENSE_EXTENSION = 8
export const LICENSE_PRODUCT = 9
export const LICENSE_CUSTOMER = 10
/** The machine limit, -1 when there is none. */
export const LICENSE_MAX = 11
export const LICENSE_USED = 12
export const LICENSE_STATE = 13
export const LICENSE_STATUS_SHIFT = 1
export const LICENSE_STATUS_MASK = 3
/** The bit of a license with a machine limit and leases. */
export const LICENSE_LEASED = 1 << 3
/** The bit of a license with a grace period. The license's EXPIRY is then the end of the grace period (docs/api.md#v16). */
export const LICENSE_GRACED = 1 << 4
export const LICENSE_SCOPE_SHIFT = 8
export const STATUS_ACTIVE = 0
export const STATUS_SUSPENDED = 1
export const STATUS_REVOKED = 2

/** Row of the license that the extension belongs to. */
export const EXTENSION_LICENSE = 0
/** Row of the value with the license's own entitlements, 0 when it has none. */
export const EXTENSION_ENTITLEMENTS = 1
/**
 * The number of seconds for which a machine holds its slot after a claim or renewal, 0 when it holds the slot until the release.
 */
export const EXTENSION_LEASE_SECONDS = 2
/** The length of the grace period in days, 0 when there is none. */
export const EXTENSION_GRACE_DAYS = 3

/** The number of rows that refer to the value, see `value-set.ts`. */
export const VALUE_REFERENCES = 0
/** The length in bytes. */
export const VALUE_LENGTH = 1
/** Row of the first block, 0 when the value's own record contains all of its bytes. */
export const VALUE_NEXT = 2
export const VALUE_HASH = 3
/** The first 44 bytes, as big-endian words. */
export const VALUE_DATA = 5
/** Row of the next block, 0 at the end. */
export const VALUE_BLOCK_NEXT = 0
/** The next 60 bytes, as big-endian words. */
export const VALUE_BLOCK_DATA = 1

/** A network's words, the hash of a machine id, a country as `c0 << 8 | c1`, or a customer's row. */
export const RULE_VALUE = 5
export const RULE_SCOPE = 10
export const RULE_ORGANIZATION = 11
/** Row of the next rule with the same network in the same scope, 0 at the end. */
export const RULE_NEXT = 12
export const RULE_TRAITS = 13
export const RULE_EXCLUSION = 1 << 1
/** The bit of an exclusion with `allowSuspendedOrExpired`. */
export const RULE_ALLOW = 1 << 2
export const RULE_TYPE_SHIFT = 3
export const RULE_TYPE_MASK = 7
export const RULE_PREFIX_SHIFT = 6
export const RULE_PREFIX_MASK = 255
export const RULE_RESTRICTION = 1 << 14
/** The bit of a monitored rule, which matches and never decides (docs/api.md#v14). */
export const RULE_MONITOR = 1 << 15
/** The bit of a restriction that no check satisfies while a change is written in phases. */
export const RULE_HOLLOW = 1 << 16
/** The bit of a restriction that does not count in `restrictedUntil` of its scope while a change is written in phases. */
export const RULE_DORMANT = 1 << 17

/** The stored types of rules. An IP rule has one of two types, one for each address family. */
export const TYPE_IP4 = 0
export const TYPE_IP6 = 1
export const TYPE_HWID = 2
export const TYPE_COUNTRY = 3
export const TYPE_CUSTOMER = 4

/** The organization, product or license that the scope belongs to: a KIND and a row. The row is 0 after the owner's removal. */
export const SCOPE_OWNER_KIND = 0
export const SCOPE_OWNER = 1
/** The number of rules of the scope, of all types. */
export const SCOPE_RULES = 2
/** The roots of the tries of IPv4 and IPv6 rules, 0 for an empty trie. */
export const SCOPE_ROOT4 = 3
export const SCOPE_ROOT6 = 4
/** The numbers of rules by type, one word for each type from TYPE_HWID on. */
export const SCOPE_COUNTS = 5
/**
 * Three doubles, one for each type of restrictions: addresses, machine ids and countries. Each double is the latest `expiresAtMs`
 * of the scope's enforced restrictions of the type, or 0 without such restrictions. Until this time, the scope restricts the type
 * (docs/api.md#v15). Restrictions with RULE_DORMANT do not count.
 */
export const SCOPE_RESTRICTED_UNTIL = 10

/** The number of types of restrictions. Each has a bit of `Verdict.restrictedTypes`: addresses, machine ids and countries, in this order. */
export const RESTRICTION_TYPE_COUNT = 3 satisfies (typeof RESTRICTION_TYPES)['length']

/** Fields of the tries' nodes, see `prefix-trie.ts`. */
export const NODE_CHILDREN = 0
export const NODE_DEPTH = 16
export const NODE_ENDS = 17

/** Kinds of rows, as the lookup of ids and the scope records store them. */
export const KIND_ORGANIZATION = 1
export const KIND_CREDENTIAL = 2
export const KIND_PRODUCT = 3
export const KIND_CUSTOMER = 4
export const KIND_LICENSE = 5
export const KIND_RULE = 6

/** Extracts the type from a rule's traits. */
export function ruleType(traits: number): number {
  return (traits >>> RULE_TYPE_SHIFT) & RULE_TYPE_MASK
}

/** Returns whether rules of a type depend on the address or the country of a check. */
export function dependsOnOrigin(type: number): boolean {
  return type <= TYPE_IP6 || type === TYPE_COUNTRY
}

/** Extracts the prefix length in bits from the traits of a rule about addresses. */
export function rulePrefixLength(traits: number): number {
  return (traits >>> RULE_PREFIX_SHIFT) & RULE_PREFIX_MASK
}

/**
 * Returns the index of a rule's type among the types of restrictions: 0 for addresses, 1 for machine ids, 2 for
 * countries.
 */
export function restrictionType(type: number): number {
  return type <= TYPE_IP6 ? 0 : type - TYPE_IP6
}
