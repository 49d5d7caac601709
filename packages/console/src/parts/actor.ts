import type { Actor } from '@keyward/contract'

export function actorName({ type, id, name, issuedBy }: Actor): string {
  if (type === 'OPERATOR') return 'the operator'
  if (type === 'CUSTOMER') return 'the customer'
  if (type === 'SYSTEM') return 'Keyward itself'
  const shown = name ?? id ?? type
  return issuedBy?.name === undefined ? shown : `${shown} (by ${issuedBy.name})`
}
