/** Finds the fields that a change replaced, for the audit log. */

export interface Difference {
  /** The path of the field, such as `policy.maxMachines`. */
  field: string
  /** Undefined if the resource is new, and null if only the field is new. */
  before?: unknown
  /** Undefined if the resource is deleted, and null if only the field is removed. */
  after?: unknown
}

const FORMER_KEY = 'previousKey'

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the values by their paths. An empty object has no paths. */
function flatten(fields: object, prefix = ''): [string, unknown][] {
  return Object.entries(fields).flatMap(([name, value]: [string, unknown]) =>
    isObject(value) ? flatten(value, `${prefix}${name}.`) : [[prefix + name, value]],
  )
}

function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
}

/**
 * Returns the fields of `after` that differ from `before`, except its times. A field that `after` lacks is unchanged.
 * A renewal names the expiry without the policy that contains it.
 */
export function changesBetween(before: object, after: object): Difference[] {
  const former = new Map(flatten(before))
  const valueOf = (field: string) => former.get(field) ?? former.get(`policy.${field}`) ?? null
  return flatten(after)
    .map(([field, value]) => ({ field, before: valueOf(field), after: value }))
    .filter((one) => one.field !== 'updatedAt' && JSON.stringify(one.before) !== JSON.stringify(one.after))
}

/**
 * Returns the fields that a change replaced. `changes` contains the request, which may repeat unchanged values; `before` contains only
 * replaced values. Without `before`, returns all non-empty values of the new or deleted resource.
 */
export function differencesOf(before: object | null, changes: object | null, isDeletion: boolean): Difference[] {
  const after = new Map(flatten(changes ?? {}))
  const formerKey = after.get(FORMER_KEY)
  // An entry about a replaced license key contains the former key, and the new key only if the request contained it.
  if (formerKey !== undefined)
    return [{ field: 'key', before: formerKey, ...(after.has('key') && { after: after.get('key') }) }]
  if (before === null)
    return (
      [...after]
        .filter(([, value]) => !isEmpty(value))
        // The members of an object, such as those of a policy, follow the fields of the resource, such as its product.
        .toSorted(([one], [other]) => Number(one.includes('.')) - Number(other.includes('.')))
        .map(([field, value]) => (isDeletion ? { field, before: value } : { field, after: value }))
    )
  const former = new Map(flatten(before))
  /** The top-level fields that were replaced. A new member of `metadata` is only in `changes`. */
  const replaced = new Set(Object.keys(before))
  const added = [...after.keys()].filter((field) => {
    const [top = ''] = field.split('.')
    return !former.has(field) && replaced.has(top) && top !== 'policy'
  })
  return [...former.keys(), ...added]
    .map((field) => ({ field, before: former.get(field) ?? null, after: after.get(field) ?? null }))
    .filter((one) => JSON.stringify(one.before) !== JSON.stringify(one.after))
}
