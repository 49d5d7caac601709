/** Imports access rules from text or a file. Shows a preview, the progress, and the invalid rows. */

import { importedAccessRules, type RuleKind, type RuleType } from '@keyward/contract'
import { Button, Card, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { Link } from 'wouter'

import { call } from '../../api/client.ts'
import { rejectedRows } from '../../api/rejected-rows.ts'
import { type BadRow, type Report, startWork } from '../../api/work.ts'
import { ExpiryField, type Expiry, NEVER, timeOf } from '../../parts/expiry-field.tsx'
import { ImportEnd, ImportScreen } from '../../parts/import-screen.tsx'
import { PasteField } from '../../parts/paste-field.tsx'
import { text } from '../../text.ts'
import { readRuleRows, type ReadRows, type RuleRow } from './rows.ts'
import { KindField, type Scope, ScopeField, TypeField } from './rule-fields.tsx'

const t = text.ruleImport
const PATH = '/rules/import'
const BATCH = 500
const NOTHING: ReadRows = { rows: [], bad: [] }

/** Imports the rows of a batch that the API accepts, and returns the rejected rows in `bad`. */
async function importBatch(rows: readonly RuleRow[]): Promise<{ created: number; skipped: number; bad: BadRow[] }> {
  if (rows.length === 0) return { created: 0, skipped: 0, bad: [] }
  try {
    const body = { rules: rows.map((row) => row.body) }
    const imported = await call({ method: 'POST', path: '/access-rules/import', body }, importedAccessRules)
    return { ...imported, bad: [] }
  } catch (error) {
    const rejected = rejectedRows(error, 'rules', rows)
    if (rejected === null) throw error
    const others = await importBatch(rejected.rest)
    return { ...others, bad: [...rejected.bad, ...others.bad] }
  }
}

async function importAll({ rows, bad: unread }: ReadRows, report: Report): Promise<void> {
  let [created, skipped] = [0, 0]
  const bad = [...unread]
  report({ bad })
  for (let at = 0; at < rows.length; at += BATCH) {
    const batch = rows.slice(at, at + BATCH)
    const imported = await importBatch(batch)
    created += imported.created
    skipped += imported.skipped
    bad.push(...imported.bad)
    report({ done: at + batch.length, bad: [...bad], summary: t.result(created, skipped) })
  }
}

export interface Defaults extends Scope {
  kind: RuleKind
  type: RuleType
}

/** Returns the rules in `content`, and reads them again when an argument changes. */
export function useRows(content: string, defaults: Defaults, expiry: Expiry): ReadRows {
  const [read, setRead] = useState(NOTHING)
  const { kind, type, scope, scopeId } = defaults
  useEffect(() => {
    let isCurrent = true
    const ends = timeOf(expiry)
    const fields = {
      kind,
      type,
      scope,
      ...(scope !== 'ORGANIZATION' && { scopeId }),
      ...(ends !== null && { expiresAt: ends }),
    }
    void readRuleRows(content, fields).then((rows) => isCurrent && setRead(rows))
    return () => {
      isCurrent = false
    }
  }, [content, kind, type, scope, scopeId, expiry])
  return read
}

function Form() {
  const queries = useQueryClient()
  const [content, setContent] = useState('')
  const [expiry, setExpiry] = useState(NEVER)
  const [defaults, setDefaults] = useState<Defaults>({
    kind: 'BLACKLIST',
    type: 'IP',
    scope: 'ORGANIZATION',
    scopeId: null,
  })
  const change = (part: Partial<Defaults>) => setDefaults({ ...defaults, ...part })
  const read = useRows(content, defaults, expiry)
  const start = () => {
    void startWork({ title: t.working, path: PATH, all: read.rows.length }, (report) => importAll(read, report)).then(
      () => queries.invalidateQueries(),
    )
  }
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
      <PasteField label={t.values} description={t.intro} value={content} onChange={setContent} />
      <Stack>
        <Card withBorder component="section" aria-label={t.defaults}>
          <Stack>
            <Title order={2} size="h5">
              {t.defaults}
            </Title>
            <KindField value={defaults.kind} onChange={(kind) => change({ kind, type: 'IP' })} />
            <TypeField kind={defaults.kind} value={defaults.type} onChange={(type) => change({ type })} />
            <ScopeField value={defaults} onChange={change} />
            <ExpiryField value={expiry} onChange={setExpiry} />
          </Stack>
        </Card>
        <Text role="status" fw={600}>
          {content.trim() === '' ? t.nothing : t.ready(read.rows.length)}
        </Text>
        <ImportEnd
          label={t.import(read.rows.length)}
          rows={read.rows.length}
          bad={read.bad}
          onStart={start}
          back="/rules"
        />
      </Stack>
    </SimpleGrid>
  )
}

export default function ImportRules() {
  const actions = (
    <Button component={Link} href="/rules">
      {t.toRules}
    </Button>
  )
  return <ImportScreen title={t.title} path={PATH} form={<Form />} actions={actions} />
}
