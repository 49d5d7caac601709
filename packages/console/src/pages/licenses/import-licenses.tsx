/** Imports licenses from CSV. Customers are found by their e-mail addresses, or created. */

import { importedLicenses } from '@keyward/contract'
import { product, type Product } from '@keyward/contract/management/products'
import { Button, Group, SimpleGrid, Stack, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { Link } from 'wouter'

import { ApiError, call } from '../../api/client.ts'
import { useList } from '../../api/hooks.ts'
import { save } from '../../api/save.ts'
import { type BadRow, type Report, startWork, useWork } from '../../api/work.ts'
import { customerWith } from '../../parts/choose.tsx'
import { Screen } from '../../parts/parts.tsx'
import { PasteField } from '../../parts/paste-field.tsx'
import { BadRows, WorkPanel } from '../../parts/work-panel.tsx'
import { text } from '../../text.ts'
import { EXAMPLE, type LicenseRow, readLicenseRows, type ReadLicenses } from './rows.ts'

const t = text.licenseImport
const PATH = '/licenses/import'
const BATCH = 200
const NOTHING: ReadLicenses = { rows: [], bad: [] }

/** The lines of the last import: e-mail address and key of each created license. They are kept for the download. */
let createdKeys: string[] = []

interface ReadyRow {
  row: LicenseRow
  body: Record<string, unknown>
}

/** Imports the valid rows of a batch and returns the others in `bad`. */
async function importBatch(ready: readonly ReadyRow[]): Promise<{ keys: string[]; bad: BadRow[] }> {
  if (ready.length === 0) return { keys: [], bad: [] }
  try {
    const body = { licenses: ready.map((one) => one.body) }
    const imported = await call({ method: 'POST', path: '/licenses/import', body }, importedLicenses)
    const keys = imported.licenses.map(
      ({ key }, index) => `"${ready[index]?.row.email ?? ''}","${key.replaceAll('"', '""')}"`,
    )
    return { keys, bad: [] }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const bad = new Map<number, BadRow>()
    for (const { pointer, detail } of error.problem.errors ?? []) {
      const index = Number(/^#\/licenses\/(\d+)/.exec(pointer)?.[1] ?? Number.NaN)
      const one = ready[index]
      if (one) bad.set(index, { where: one.row.where, detail: `${pointer.split('/').at(-1) ?? ''}: ${detail}` })
    }
    if (bad.size === 0) throw error
    const others = await importBatch(ready.filter((_, index) => !bad.has(index)))
    return { keys: others.keys, bad: [...bad.values(), ...others.bad] }
  }
}

async function importAll({ rows, bad: unread }: ReadLicenses, report: Report): Promise<void> {
  createdKeys = []
  const bad = [...unread]
  const customers = new Map<string, string>()
  report({ bad })
  for (let at = 0; at < rows.length; at += BATCH) {
    const batch = rows.slice(at, at + BATCH)
    const ready: ReadyRow[] = []
    for (const [index, row] of batch.entries()) {
      const email = row.email.toLowerCase()
      try {
        const customerId = customers.get(email) ?? (await customerWith(row.email, row.name))
        customers.set(email, customerId)
        ready.push({ row, body: { ...row.body, customerId } })
      } catch (error) {
        if (!(error instanceof ApiError) || error.problem.status !== 422) throw error
        bad.push({ where: row.where, detail: `email: ${error.problem.errors?.[0]?.detail ?? error.message}` })
      }
      report({ done: at + index })
    }
    const imported = await importBatch(ready)
    createdKeys.push(...imported.keys)
    bad.push(...imported.bad)
    report({ done: at + batch.length, bad: [...bad], summary: t.result(createdKeys.length) })
  }
}

/** The rows of the text, read again after each change. */
function useRows(content: string, products: readonly Product[]): ReadLicenses {
  const [read, setRead] = useState(NOTHING)
  useEffect(() => {
    let isCurrent = true
    void readLicenseRows(content, products).then((rows) => isCurrent && setRead(rows))
    return () => {
      isCurrent = false
    }
  }, [content, products])
  return read
}

function Form() {
  const queries = useQueryClient()
  const [content, setContent] = useState('')
  const products = useList('/products', product)
  const { items, hasMore, isLoadingMore, loadMore } = products
  // The names of all products are needed. An organization has few.
  useEffect(() => {
    if (hasMore && !isLoadingMore) loadMore()
  }, [hasMore, isLoadingMore, loadMore])
  const read = useRows(content, items)
  const customers = new Set(read.rows.map(({ email }) => email.toLowerCase())).size
  const start = () => {
    void startWork({ title: t.working, path: PATH, all: read.rows.length }, (report) => importAll(read, report)).then(
      () => queries.invalidateQueries(),
    )
  }
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
      <PasteField label={t.values} description={t.intro} value={content} onChange={setContent} />
      <Stack>
        <Text size="sm" c="dimmed">
          {t.columns}
        </Text>
        <Group>
          <Button size="xs" variant="default" onClick={() => setContent(EXAMPLE(items[0]?.name ?? 'Product'))}>
            {t.example}
          </Button>
        </Group>
        <div role="status">
          <Text fw={600}>{content.trim() === '' ? t.nothing : t.ready(read.rows.length)}</Text>
          {read.rows.length > 0 && (
            <Text size="sm" c="dimmed">
              {t.customers(customers)}
            </Text>
          )}
        </div>
        <BadRows rows={read.bad} />
        <Group>
          <Button onClick={start} disabled={read.rows.length === 0}>
            {t.import(read.rows.length)}
          </Button>
          <Button variant="default" component={Link} href="/licenses">
            {text.cancel}
          </Button>
        </Group>
      </Stack>
    </SimpleGrid>
  )
}

export default function ImportLicenses() {
  const work = useWork(PATH)
  return (
    <Screen title={t.title}>
      {work === undefined ? (
        <Form />
      ) : (
        <WorkPanel
          work={work}
          actions={
            <>
              <Button component={Link} href="/licenses">
                {t.toLicenses}
              </Button>
              {createdKeys.length > 0 && (
                <Button
                  variant="default"
                  onClick={() => save('license-keys.csv', `email,key\n${createdKeys.join('\n')}\n`)}
                >
                  {t.keys}
                </Button>
              )}
            </>
          }
        />
      )}
    </Screen>
  )
}
