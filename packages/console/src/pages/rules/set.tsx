import { accessRuleSets } from '@keyward/contract'
import type { Me } from '@keyward/contract/management/sign-in'
import { Button, Card, SimpleGrid } from '@mantine/core'
import { Link, useLocation } from 'wouter'

import { callAndApply } from '../../api/client.ts'
import { useChange, useRead } from '../../api/hooks.ts'
import { liveMessage } from '../../api/live.ts'
import { ConfirmButton } from '../../parts/confirm.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { Fact, Waiting, When } from '../../parts/parts.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { useUrlParameters, useUrlSorting } from '../../parts/url.ts'
import { text } from '../../text.ts'
import { replacePath } from './paths.ts'
import { RulesTable } from './rules-table.tsx'
import { ModeButton } from './set-mode.tsx'
import { putSet, readStored } from './stored-set.ts'

const t = text.ruleSets

export default function RuleSet({ me }: { me: Me }) {
  const name = useUrlParameters().get('name') ?? ''
  const input = { params: { set: name } }
  const read = useRead(accessRuleSets.readAccessRuleSet, input)
  const [, navigate] = useLocation()
  const [order, sorting] = useUrlSorting()
  const remove = useChange(
    async () => {
      const before = await readStored(name)
      return { before, ...(await callAndApply(accessRuleSets.deleteAccessRuleSet, input)) }
    },
    {
      done: ({ applied }) => liveMessage(t.deleted, applied),
      undo: ({ before }) => putSet(name, before.rows, null),
      onDone: () => navigate('/rules/sets'),
    },
  )
  if (read.error) return <ErrorMessage error={read.error} />
  if (!read.data) return <Waiting />
  const { rules, createdAt, updatedAt } = read.data
  const canWrite = me.permissions.includes('licenses.write')
  return (
    <Screen
      title={name}
      actions={
        canWrite && (
          <>
            <Button component={Link} href={replacePath(name)}>
              {t.replace}
            </Button>
            <ModeButton mode="ENFORCE" selection={{ set: name }} />
            <ConfirmButton
              label={t.delete}
              title={t.deleteTitle(name)}
              consequence={t.deleteHint(rules)}
              onConfirm={() => remove.mutateAsync(undefined)}
            />
          </>
        )
      }
    >
      <Card withBorder>
        <SimpleGrid cols={{ base: 1, xs: 3 }} component="dl" m={0}>
          <Fact term={t.rules}>{rules.toLocaleString()}</Fact>
          <Fact term={t.updated}>
            <When at={updatedAt} />
          </Fact>
          <Fact term={text.licenses.createdOn}>
            <When at={createdAt} />
          </Fact>
        </SimpleGrid>
      </Card>
      <RulesTable
        filters={{ set: name, ...order }}
        label={t.rules}
        canWrite={canWrite}
        empty={t.emptySet}
        sorting={sorting}
      />
    </Screen>
  )
}
