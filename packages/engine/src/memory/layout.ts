/**
 * The layout of the index's records: which field is in which word. `LAYOUT` declares every record; the constants after
 * it are the same offsets as literals, because the hot path reads them. A test compares the two, so a field is added by
 * taking it from a `spare` and naming its offset.
 *
 * A record is 16 words, one cache line, so that a check reads one line for its license. What only some licenses need is
 * in a license extension: a record in a slab of its own, which exists only for licenses that have such a field. Other
 * licenses cost neither memory nor time for it. Making the license's record longer would cost both for every license,
 * and a hash table from license to extension would cost those that have one a cache miss. So the license holds the
 * extension's row. Its word comes from the hash of the license key, which is 96 bits instead of 128: among 2^24 licenses,
 * the probability that a check with an unknown key meets an equal hash is 2^-72. Likewise, a secret's SHA-256 is
 * compared by its first 224 bits, which leaves a word to the credential.
 */

/** Sizes of a record's fields in words, in order; a word that is divided declares its fields in bits, lowest first. */
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
    state: { mark: 1, status: 2, leased: 1, spare: 4, scope: 24 },
    expiry: 2,
  },
  extension: {
    license: 1,
    entitlements: 1,
    leaseSeconds: 1,
    spare: 5,
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
    counts: 5,
    restrictedUntil: 6,
  },
  node: {
    children: 16,
    depth: 1,
    ends: 15,
  },
} as const satisfies Record<string, RecordLayout>

/** Words of a record, unless it has a size of its own below. */
export const ROW_WORDS = 16
export const CUSTOMER_WORDS = 8
export const EXTENSION_WORDS = 8
export const NODE_WORDS = 32

// Fields that records of several kinds have in the same place.
/** The UUID, as big-endian words. */
export const ID = 0
/** The number of the row's life, 0 in a free row. It is not used twice in 2^32 insertions. */
export const GENERATION = 4
/** `expiresAtMs`, a double; counted in doubles from the record's start. */
export const EXPIRY = 7
export const ROW_DOUBLES = 8
/** Bit 0 of its word: the mark of the reload that the row was last received in. */
export const MARK = 1

export const ORGANIZATION_FLAGS = 5
/** Row of the scope record, 0 when no rule has the organization as its scope. The same holds for products and licenses. */
export const ORGANIZATION_SCOPE = 6
/** How many rows refer to this one. */
export const ORGANIZATION_CHILDREN = 7
/** How many rules of the organization, in any scope, depend on the address or the country. */
export const ORGANIZATION_ADDRESS_RULES = 8

export const PRODUCT_FLAGS = 5
export const PRODUCT_SCOPE = 6
export const PRODUCT_CHILDREN = 7
export const PRODUCT_ORGANIZATION = 8
/** Row of the value, 0 when the product has no entitlements. */
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

/** The first words of the license key's hash within its organization, see `bindKey`. */
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
/** The license has a machine limit and leases. */
export const LICENSE_LEASED = 1 << 3
export const LICENSE_SCOPE_SHIFT = 8
export const STATUS_ACTIVE = 0
export const STATUS_SUSPENDED = 1
export const STATUS_REVOKED = 2

/** Row of the license that the extension belongs to. */
export const EXTENSION_LICENSE = 0
/** Row of the value with the license's own entitlements, 0 when it has none. */
export const EXTENSION_ENTITLEMENTS = 1
/** How long a machine holds its slot after a renewal, 0 when it holds it until it is released. */
export const EXTENSION_LEASE_SECONDS = 2

/** How many rows refer to the value, see `value-set.ts`. */
export const VALUE_REFERENCES = 0
/** The length in bytes. */
export const VALUE_LENGTH = 1
/** Row of the first block, 0 when the value's own record holds all of its bytes. */
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
/** The next rule with the same network in the same scope, 0 at the end. */
export const RULE_NEXT = 12
export const RULE_TRAITS = 13
export const RULE_EXCLUSION = 1 << 1
/** The exclusion has `allowSuspendedOrExpired`. */
export const RULE_ALLOW = 1 << 2
export const RULE_TYPE_SHIFT = 3
export const RULE_TYPE_MASK = 7
export const RULE_PREFIX_SHIFT = 6
export const RULE_PREFIX_MASK = 255
export const RULE_RESTRICTION = 1 << 14
/** The rule matches and never decides (docs/api.md#v14). */
export const RULE_MONITOR = 1 << 15
/** The restriction satisfies no check, while a change in phases is written. */
export const RULE_HOLLOW = 1 << 16
/** The restriction is not counted in its scope's `restrictedUntil`, while a change in phases is written. */
export const RULE_DORMANT = 1 << 17

/** Types of rules. IP is two, one for each address family. */
export const TYPE_IP4 = 0
export const TYPE_IP6 = 1
export const TYPE_HWID = 2
export const TYPE_COUNTRY = 3
export const TYPE_CUSTOMER = 4

/** The owner of the rules: a KIND and its row. The row is 0 after the owner was removed. */
export const SCOPE_OWNER_KIND = 0
export const SCOPE_OWNER = 1
/** How many rules the scope has, and from SCOPE_COUNTS on how many of each type. */
export const SCOPE_RULES = 2
export const SCOPE_ROOT4 = 3
export const SCOPE_ROOT6 = 4
export const SCOPE_COUNTS = 5
/**
 * The latest `expiresAtMs` of the scope's enforced restrictions of addresses, machine ids and countries: three doubles, 0
 * where there are none. A type is restricted as long as its time is in the future (docs/api.md#v15).
 */
export const SCOPE_RESTRICTED_UNTIL = 10

/** The types of restrictions, as the bits of `Verdict.restrictedTypes`. IPv4 and IPv6 are one. */
export const RESTRICTED_ADDRESS = 1 << 0
export const RESTRICTED_MACHINE = 1 << 1
export const RESTRICTED_COUNTRY = 1 << 2
export const RESTRICTION_TYPES = 3

/** Nodes of the tries, see `prefix-trie.ts`. */
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

/** Returns the type in a rule's traits. */
export function ruleType(traits: number): number {
  return (traits >>> RULE_TYPE_SHIFT) & RULE_TYPE_MASK
}

/** Returns the prefix length, in bits, in the traits of a rule about addresses. */
export function rulePrefixLength(traits: number): number {
  return (traits >>> RULE_PREFIX_SHIFT) & RULE_PREFIX_MASK
}

/** Returns the place of a rule's type among the types of restrictions: 0 address, 1 machine id, 2 country. */
export function restrictionType(type: number): number {
  return type <= TYPE_IP6 ? 0 : type - TYPE_IP6
}
