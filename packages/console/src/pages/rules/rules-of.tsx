import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { Link } from 'wouter'

import { useMay } from '../../api/me.ts'
import { Part } from '../../parts/parts.tsx'
import { RulesTable } from './rules-table.tsx'

/** The access rules that apply to one product or license alone. */
export function RulesOf({ scope, id }: { scope: 'PRODUCT' | 'LICENSE'; id: string }) {
  const may = useMay()
  const noun = scope.toLowerCase()
  const title = `Access rules of this ${noun}`
  const create = may('licenses.write') && (
    <Button
      size="xs"
      variant="default"
      component={Link}
      href={`/rules/new?${noun}=${id}`}
      leftSection={<IconPlus size={14} />}
    >
      New rule
    </Button>
  )
  return (
    <Part title={title} action={create}>
      <RulesTable
        filters={{ scope, scopeId: id }}
        label={title}
        empty={`No access rule applies to this ${noun} alone.`}
      />
    </Part>
  )
}
