/** Replaces the rules of a set. First shows how many rules the replacement creates, changes and removes. */

import { accessRuleSets } from '@keyward/contract'
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
import { counted, text } from '../../text.ts'
import { useRows } from './import-rules.tsx'
import { setPath } from './paths.ts'
import { type Counts, countsOf } from './replacement.ts'
import { BLACKLISTED_ADDRESSES, DefaultFields } from './rule-fields.tsx'
import { putSet, readStored, type StoredSet } from './stored-set.ts'

const t = {
  repeated: (count: number) =>
    count === 1 ? '1 row repeats an earlier row' : `${count.toLocaleString()} rows repeat earlier rows`,
}

function Preview({ counts }: { counts: Counts }) {
  const { created, changed, unchanged, removed, repeated } = counts
  return (
    <Card withBorder component="section" aria-label="What will change" role="status">
      <Stack gap="xs">
        <Title order={2} size="h5">
          What will change
        </Title>
        <List>
          <List.Item>{`${counted(created, 'rule')} created`}</List.Item>
          <List.Item>{`${counted(changed, 'rule')} changed`}</List.Item>
          <List.Item>{`${counted(unchanged, 'rule')} unchanged`}</List.Item>
          <List.Item>
            <Text span fw={removed > 0 ? 600 : 400}>
              {`${counted(removed, 'rule')} removed`}
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
  const [defaults, setDefaults] = useState(BLACKLISTED_ADDRESSES)
  const read = useRows(content, defaults, NEVER)
  const stored = useQuery({ queryKey: ['stored set', name], queryFn: () => readStored(name), staleTime: 0 })
  const back = setPath(name)
  const replace = useChange(
    async (before: StoredSet) => ({ before, ...(await putSet(name, read.rows, before.version)) }),
    {
      done: ({ applied }) => liveMessage('Replaced the set.', applied),
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
    <Screen title={`Replace the rules of ${name}`}>
      <Text c="dimmed">
        Paste the whole new list, or choose a file. Nothing changes before you have seen the counts.
      </Text>
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
        <PasteField label="Values" description={text.pasteRules} value={content} onChange={setContent} />
        <Stack>
          <DefaultFields value={defaults} onChange={setDefaults} />
          {stored.data && content.trim() !== '' && <Preview counts={countsOf(stored.data.rows, read.rows)} />}
          <BadRows rows={read.bad} />
          {read.bad.length > 0 && (
            <Text size="sm">Correct the invalid rows first. A set is replaced as a whole or not at all.</Text>
          )}
          <ErrorMessage error={stored.error ?? replace.error} />
          <Group>
            <Button
              onClick={() => stored.data && replace.mutate(stored.data)}
              loading={replace.isPending}
              disabled={content.trim() === '' || read.bad.length > 0 || !stored.data}
            >
              Replace the set
            </Button>
            <Button variant="default" component={Link} href={stored.data?.version ? back : '/rules/sets'}>
              Cancel
            </Button>
          </Group>
        </Stack>
      </SimpleGrid>
    </Screen>
  )
}
