/** Shows how many validators have applied all changes of the organization. */

import { propagation } from '@keyward/contract/management/propagation'
import { Tooltip } from '@mantine/core'

import { useRead } from '../api/hooks.ts'
import { text } from '../text.ts'
import { DotBadge } from './parts.tsx'

const REFRESH_MS = 15_000
const t = text.live

export function LiveLine() {
  const { data } = useRead(propagation.readPropagation, {}, REFRESH_MS)
  if (!data) return null
  const { validators, current, behindBy } = data
  const color = validators === 0 ? 'red' : current === validators ? 'teal' : 'orange'
  return (
    <Tooltip label={behindBy === 0 ? t.allApplied : t.behind(behindBy)}>
      <DotBadge color={color} role="status">
        {validators === 0 ? t.nobody : t.now(current, validators)}
      </DotBadge>
    </Tooltip>
  )
}
