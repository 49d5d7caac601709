/** Imports access rules from text or a file. Shows a preview, the progress, and the invalid rows. */

import { accessRules, type RuleKind, type RuleType } from '@keyward/contract'
import { Button, Card, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { Link } from 'wouter'

import { type Applied, callAndApply } from '../../api/client.ts'
import { liveMessage } from '../../api/live.ts'
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
const MAX_DELETED = 1_000
const NOTHING: ReadRows = { rows: [], bad: [] }

interface Imported {
  /** The ids of the created rules. */
  ids: string[]
  skipped: number
  /** The first skipped rows. */
  covered: BadRow[]
  bad: BadRow[]
  applied: Applied | null
}

/** The ids of the rules that the last import has created. */
let createdIds: string[] = []

/**
 * Imports a batch without the rows that the API rejects, which are returned in `bad`. The last batch waits until the validators have
 * applied the whole import.
 */
async function importBatch(rows: readonly RuleRow[], isLast: boolean): Promise<Imported> {
  if (rows.length === 0) return { ids: [], skipped: 0, covered: [], bad: [], applied: null }
  try {
    const body = { rules: rows.map((row) => row.body) }
    const { result, applied } = await callAndApply(accessRules.importAccessRules, { body }, { waits: isLast })
    const covered = result.skippedRows.flatMap(({ pointer }) => {
      const row = rows[Number(pointer.split('/')[2])]
      return row ? [{ where: row.where, detail: row.body.value }] : []
    })
    return { ids: result.ids, skipped: result.skipped, covered, bad: [], applied }
  } catch (error) {
    const rejected = rejectedRows(error, 'rules', rows)
    if (rejected === null) throw error
    const others = await importBatch(rejected.rest, isLast)
    return { ...others, bad: [...rejected.bad, ...others.bad] }
  }
}

async function importAll({ rows, bad: unread }: ReadRows, report: Report): Promise<void> {
  let skipped = 0
  let applied: Applied | null = null
  createdIds = []
  const bad = [...unread]
  const covered: BadRow[] = []
  report({ bad })
  for (let at = 0; at < rows.length; at += BATCH) {
    const batch = rows.slice(at, at + BATCH)
    const imported = await importBatch(batch, at + BATCH >= rows.length)
    createdIds.push(...imported.ids)
    skipped += imported.skipped
    applied = imported.applied
    bad.push(...imported.bad)
    covered.push(...imported.covered)
    report({
      done: at + batch.length,
      bad: [...bad],
      covered: [...covered],
      summary: t.result(createdIds.length, skipped),
    })
  }
  if (createdIds.length > 0) report({ summary: liveMessage(t.result(createdIds.length, skipped), applied) })
}

/** Deletes the rules that the last import has created. */
async function undoImport(report: Report): Promise<void> {
  const ids = createdIds
  createdIds = []
  let deleted = 0
  let applied: Applied | null = null
  for (let at = 0; at < ids.length; at += MAX_DELETED) {
    const body = { ids: ids.slice(at, at + MAX_DELETED) }
    const waits = at + MAX_DELETED >= ids.length
    const reply = await callAndApply(accessRules.deleteAccessRules, { body }, { waits })
    deleted += reply.result.deleted
    applied = reply.applied
    report({ done: at + body.ids.length, summary: text.rules.deletedMany(deleted) })
  }
  report({ summary: liveMessage(text.rules.deletedMany(deleted), applied) })
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

/** The buttons below the result. */
function Actions() {
  const queries = useQueryClient()
  const undo = () =>
    void startWork({ title: t.undoing, path: PATH, all: createdIds.length }, undoImport).then(() =>
      queries.invalidateQueries(),
    )
  return (
    <>
      <Button component={Link} href="/rules">
        {t.toRules}
      </Button>
      {createdIds.length > 0 && (
        <Button variant="default" onClick={undo}>
          {text.undo}
        </Button>
      )}
    </>
  )
}

export default function ImportRules() {
  return <ImportScreen title={t.title} path={PATH} form={<Form />} actions={<Actions />} />
}
