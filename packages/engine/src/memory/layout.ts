/**
 * Where each field stands in a record. A record is 16 words (customers: 8), one cache line, so that a check touches one
 * line for its license; times are doubles in milliseconds over the last two words. Every record of the first six kinds
 * begins with its id and its generation; the generation is 0 in a free row and never used twice in 2^32 insertions.
 *
 *   word          0-3  4       5-8       9        10       11       12         13       14-15
 *   organization  id   generation  stamp     scope    children rules    (5 to 8, see below)
 *   product       id   generation  stamp     scope    children organization
 *   customer      id   generation  stamp     children organization      (5 to 7)
 *   credential    id   generation  secret hash (5-12)                              state    expiry
 *   license       id   generation  key hash  product  customer max      used       state    expiry
 *   rule          id   generation  value     (9 free) scope    org.     next       traits   expiry
 *   scope         see below; it has no id
 */
export const ROW_WORDS = 16
export const CUSTOMER_WORDS = 8

export const ID = 0
export const GENERATION = 4

/** The double that holds `expiresAtMs`, counted in doubles of a 16-word record. */
export const EXPIRY = 7
export const ROW_DOUBLES = 8

// Organizations, products and customers. The stamp is bit 0.
export const TENANT_STAMP = 5
export const TENANT_SCOPE = 6
export const TENANT_CHILDREN = 7
export const ORGANIZATION_ADDRESS_RULES = 8
export const PRODUCT_ORGANIZATION = 8
export const CUSTOMER_CHILDREN = 6
export const CUSTOMER_ORGANIZATION = 7

// Credentials.
export const SECRET = 5
/** Bit 0 stamp, bit 1 revoked, from bit 2 on the row of the organization. */
export const CREDENTIAL_STATE = 13
export const CREDENTIAL_REVOKED = 2
export const CREDENTIAL_ORGANIZATION_SHIFT = 2

// Licenses.
export const KEY_HASH = 5
export const LICENSE_PRODUCT = 9
export const LICENSE_CUSTOMER = 10
/** -1: no limit. */
export const LICENSE_MAX = 11
export const LICENSE_USED = 12
/** Bit 0 stamp, bits 1 and 2 status, from bit 3 on the row of the scope (0: no rule is scoped to the license). */
export const LICENSE_STATE = 13
export const LICENSE_STATUS_SHIFT = 1
export const LICENSE_SCOPE_SHIFT = 3
export const STATUS_ACTIVE = 0
export const STATUS_SUSPENDED = 1
export const STATUS_REVOKED = 2

// Rules. The value: a network's words; the keyed hash of a machine id; a country as c0 << 8 | c1; a customer's row.
export const RULE_VALUE = 5
export const RULE_SCOPE = 10
export const RULE_ORGANIZATION = 11
/** The next rule with the same network in the same scope, 0 at the end. */
export const RULE_NEXT = 12
/** Bit 0 stamp; the rest is the rule's traits, bits below. */
export const RULE_TRAITS = 13
export const RULE_EXCLUSION = 2
export const RULE_ALLOW = 4
export const RULE_TYPE_SHIFT = 3
export const RULE_PREFIX_SHIFT = 6

/** Types of rules; IP counts as two, one for each family. Each has its count in the scope's record. */
export const TYPE_IP4 = 0
export const TYPE_IP6 = 1
export const TYPE_HWID = 2
export const TYPE_COUNTRY = 3
export const TYPE_CUSTOMER = 4

// Scopes: an organization, product or license that has rules of its own has such a record, and only as long.
export const SCOPE_OWNER_KIND = 0
export const SCOPE_OWNER = 1
export const SCOPE_RULES = 2
/** Five counts, by type. */
export const SCOPE_COUNTS = 3
/** Roots of the two tries. */
export const SCOPE_ROOT4 = 8
export const SCOPE_ROOT6 = 9

// Kinds of rows, as the directory of ids and the scopes name them.
export const KIND_ORGANIZATION = 1
export const KIND_CREDENTIAL = 2
export const KIND_PRODUCT = 3
export const KIND_CUSTOMER = 4
export const KIND_LICENSE = 5
export const KIND_RULE = 6

export function ruleType(traits: number): number {
  return (traits >>> RULE_TYPE_SHIFT) & 7
}

export function rulePrefixLength(traits: number): number {
  return (traits >>> RULE_PREFIX_SHIFT) & 255
}
