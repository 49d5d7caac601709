/** Replaces the rules of a set. First shows how many rules the replacement creates, changes and removes. */

import { accessRuleSets, type RuleKind, type RuleType } from '@keyward/contract'
import { Button, Card, Group, List, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { Link, useLocation } from 'wouter'

import { call } from '../../api/client.ts'
import { useChange } from '../../api/hooks.ts'
import { liveMessage } from '../../api/live.ts'
import { NEVER } from '../../parts/expiry-field.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { PasteField } from '../../parts/paste-field.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { useUrlParameters } from '../../parts/url.ts'
import { BadRows } from '../../parts/work-panel.tsx'
import { text } from '../../text.ts'
import { type Defaults, useRows } from './import-rules.tsx'
import { setPath } from './paths.ts'
import { type Counts, countsOf } from './replacement.ts'
import { KindField, ScopeField, TypeField } from './rule-fields.tsx'
import { putSet, readStored, type StoredSet } from './stored-set.ts'

const t = text.ruleSets

function Preview({ counts }: { counts: Counts }) {
  const { created, changed, unchanged, removed, repeated } = counts
  return (
    <Card withBorder component="section" aria-label={t.preview} role="status">
      <Stack gap="xs">
        <Title order={2} size="h5">
          {t.preview}
        </Title>
        <List>
          <List.Item>{t.created(created)}</List.Item>
          <List.Item>{t.changed(changed)}</List.Item>
          <List.Item>{t.unchanged(unchanged)}</List.Item>
          <List.Item>
            <Text span fw={removed > 0 ? 600 : 400}>
              {t.removed(removed)}
            </Text>
          </List.Item>
          {repeated > 0 && <List.Item>{t.repeated(repeated)}</List.Item>}
        </List>
      </Stack>
    </Card>
  )
}

export default function ReplaceSet() {
  const name = useUrlParameters().get('name') ?? ''
  const [, navigate] = useLocation()
  const [content, setContent] = useState('')
  const [defaults, setDefaults] = useState<Defaults>({
    kind: 'BLACKLIST',
    type: 'IP',
    scope: 'ORGANIZATION',
    scopeId: null,
  })
  const change = (part: Partial<Defaults>) => setDefaults({ ...defaults, ...part })
  const read = useRows(content, defaults, NEVER)
  const stored = useQuery({ queryKey: ['stored set', name], queryFn: () => readStored(name), staleTime: 0 })
  const back = setPath(name)
  const replace = useChange(
    async (before: StoredSet) => ({ before, ...(await putSet(name, read.rows, before.version)) }),
    {
      done: ({ applied }) => liveMessage(t.replaced, applied),
      undo: async ({ result: { version }, before }) => {
        if (before.version !== null) return putSet(name, before.rows, version)
        navigate('/rules/sets')
        return call(accessRuleSets.deleteAccessRuleSet, { params: { set: name } })
      },
      quiet: true,
      onDone: () => navigate(back),
    },
  )
  const { refetch } = stored
  // A replacement fails if the set has changed since the preview. Reading the set again updates the preview.
  useEffect(() => void (replace.error && refetch()), [replace.error, refetch])
  return (
    <Screen title={t.replaceTitle(name)}>
      <Text c="dimmed">{t.replaceIntro}</Text>
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
        <PasteField
          label={text.ruleImport.values}
          description={text.ruleImport.intro}
          value={content}
          onChange={setContent}
        />
        <Stack>
          <Card withBorder component="section" aria-label={text.ruleImport.defaults}>
            <Stack>
              <Title order={2} size="h5">
                {text.ruleImport.defaults}
              </Title>
              <KindField value={defaults.kind} onChange={(kind: RuleKind) => change({ kind, type: 'IP' })} />
              <TypeField kind={defaults.kind} value={defaults.type} onChange={(type: RuleType) => change({ type })} />
              <ScopeField value={defaults} onChange={change} />
            </Stack>
          </Card>
          {stored.data && content.trim() !== '' && <Preview counts={countsOf(stored.data.rows, read.rows)} />}
          <BadRows rows={read.bad} />
          {read.bad.length > 0 && <Text size="sm">{t.invalid}</Text>}
          <ErrorMessage error={stored.error ?? replace.error} />
          <Group>
            <Button
              onClick={() => stored.data && replace.mutate(stored.data)}
              loading={replace.isPending}
              disabled={content.trim() === '' || read.bad.length > 0 || !stored.data}
            >
              {t.confirm}
            </Button>
            <Button variant="default" component={Link} href={stored.data?.version ? back : '/rules/sets'}>
              {text.cancel}
            </Button>
          </Group>
        </Stack>
      </SimpleGrid>
    </Screen>
  )
}
