import type { Actor } from '@keyward/contract'

import { text } from '../text.ts'

const t = text.audit

export function actorName({ type, id, name, issuedBy }: Actor): string {
  if (type === 'OPERATOR') return t.operator
  if (type === 'SYSTEM') return t.system
  const shown = name ?? id ?? type
  return issuedBy?.name === undefined ? shown : `${shown} (${t.invitedBy(issuedBy.name)})`
}
