import { type Template, templates } from '@keyward/contract/management/templates'
import { Button, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { lazy, Suspense } from 'react'

import { useList } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { DotBadge, Part } from '../../parts/parts.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { termText } from '../licenses/summary.tsx'

/** Loaded when a person opens it, because its fields are large. */
const TemplateWindow = lazy(async () => ({ default: (await import('./template-window.tsx')).TemplateWindow }))

const COLUMNS: readonly Column<Template>[] = [
  { title: 'Name', cell: ({ name }) => name },
  { title: 'Terms', cell: ({ policy }) => termText({ policy: { ...policy, expiresAt: null } }) },
  { title: 'Machines', cell: ({ policy }) => policy.maxMachines ?? 'no limit' },
  {
    title: '',
    cell: ({ unapplied }) => unapplied.length > 0 && <DotBadge color="yellow">Apply to licenses</DotBadge>,
  },
]

/** The templates of a product. */
export function Templates({ productId }: { productId: string }) {
  const may = useMay()
  const list = useList(templates.listTemplates, { params: { id: productId } })
  const [isCreating, creating] = useDisclosure(false)
  return (
    <Part
      title="Templates"
      action={
        may('products.write') && (
          <Button size="xs" variant="default" onClick={creating.open}>
            New template
          </Button>
        )
      }
    >
      <ListTable
        list={list}
        columns={COLUMNS}
        href={({ id }) => `/templates/${id}`}
        label="Templates"
        empty={
          <Text c="dimmed">
            No templates yet. A template contains the terms of a kind of license, such as "Studio, yearly".
          </Text>
        }
      />
      {isCreating && (
        <Suspense>
          <TemplateWindow productId={productId} before={null} onClose={creating.close} />
        </Suspense>
      )}
    </Part>
  )
}
