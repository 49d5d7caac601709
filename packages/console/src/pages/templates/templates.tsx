import { type Template, templates } from '@keyward/contract/management/templates'
import { Button, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { lazy, Suspense } from 'react'

import { useList } from '../../api/hooks.ts'
import { DotBadge, Part } from '../../parts/parts.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { text } from '../../text.ts'
import { termText } from '../licenses/summary.tsx'

/** Loaded when a person opens it, because its fields are large. */
const TemplateWindow = lazy(async () => ({ default: (await import('./template-window.tsx')).TemplateWindow }))

const t = text.templates

const COLUMNS: readonly Column<Template>[] = [
  { title: t.nameOf, cell: ({ name }) => name },
  { title: t.terms, cell: ({ policy }) => termText({ policy: { ...policy, expiresAt: null } }) },
  { title: text.licenses.machines, cell: ({ policy }) => policy.maxMachines ?? text.unlimited },
  {
    title: '',
    cell: ({ unapplied }) => unapplied.length > 0 && <DotBadge color="yellow">{t.apply}</DotBadge>,
  },
]

/** The templates of a product. */
export function Templates({ productId, canWrite }: { productId: string; canWrite: boolean }) {
  const list = useList(templates.listTemplates, { params: { id: productId } })
  const [isCreating, creating] = useDisclosure(false)
  return (
    <Part
      title={t.title}
      action={
        canWrite && (
          <Button size="xs" variant="default" onClick={creating.open}>
            {t.new}
          </Button>
        )
      }
    >
      <ListTable
        list={list}
        columns={COLUMNS}
        href={({ id }) => `/templates/${id}`}
        label={t.title}
        empty={<Text c="dimmed">{t.empty}</Text>}
      />
      {isCreating && (
        <Suspense>
          <TemplateWindow productId={productId} before={null} onClose={creating.close} />
        </Suspense>
      )}
    </Part>
  )
}
