import { alerts } from '@keyward/contract/management/activity'
import type { Me } from '@keyward/contract/management/sign-in'

import { useRead } from '../api/hooks.ts'

const REFRESH_MS = 60_000
const MOST = 50

/** Returns the number of open alerts, or an empty string when no alert is open, and for a caller who may not see alerts. */
export function useOpenAlerts(me: Me): string {
  const mayRead = me.permissions.includes('licenses.read')
  const read = useRead(alerts.listAlerts, mayRead ? { query: { open: 'true', limit: MOST } } : null, REFRESH_MS)
  const { data = [], nextCursor = null } = read.data ?? {}
  if (data.length === 0) return ''
  return nextCursor === null ? String(data.length) : `${MOST}+`
}
