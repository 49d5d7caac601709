/** One template: its values, and its application to the licenses that have it. */

import type { Me } from '@keyward/contract/management/sign-in'
import { type AppliedTemplate, type Template, templates } from '@keyward/contract/management/templates'
import { Alert, Button, Card, SimpleGrid, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'

import { useCall, useRead } from '../../api/hooks.ts'
import { useName } from '../../api/names.ts'
import { useRemembered } from '../../api/recent.ts'
import { Confirm, ConfirmButton } from '../../parts/confirm.tsx'
import { EntitlementList } from '../../parts/entitlement-list.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { Copyable, Fact, KeyText, TextLink, Waiting } from '../../parts/parts.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { text } from '../../text.ts'
import { slotsOf, termText } from '../licenses/summary.tsx'
import { TemplateWindow } from './template-window.tsx'

const t = text.templates
const RUNNING_MS = 1_000

const isRunning = (one: Template | undefined) => one?.application?.endedAt === null

function nameOf(field: string): string {
  const names: Readonly<Record<string, string>> = t.fields
  return names[field] ?? field
}

/** The effect of an application, with some of the licenses that keep a value. */
function Effect({ effect: { total, changed, kept, examples } }: { effect: AppliedTemplate }) {
  return (
    <>
      <span>{changed === 0 ? t.nothing : t.changes(changed, total)}</span>
      {kept > 0 && <span> {t.kept(kept)}</span>}
      {examples.kept.map(({ id, key, fields }) => (
        <span key={id} className="sub">
          <KeyText value={key} /> {fields.map(nameOf).join(', ')}
        </span>
      ))}
    </>
  )
}

function Apply({ template: { id, name } }: { template: Template }) {
  const [effect, setEffect] = useState<AppliedTemplate | null>(null)
  const params = { id }
  const preview = useCall(templates.applyTemplate, { onDone: setEffect })
  const apply = useCall(templates.applyTemplate, { done: t.started })
  return (
    <>
      <Button
        onClick={() => preview.mutate({ params, body: { dryRun: true } })}
        loading={preview.isPending}
        variant="default"
      >
        {t.apply}
      </Button>
      {effect && (
        <Confirm
          label={t.apply}
          title={t.applyTitle}
          object={name}
          consequence={<Effect effect={effect} />}
          onClose={() => setEffect(null)}
          onConfirm={() => apply.mutateAsync({ params, body: {} })}
          isPending={apply.isPending}
        />
      )}
    </>
  )
}

function State({ template: { application, unapplied } }: { template: Template }) {
  if (application !== null && application.endedAt === null)
    return <Alert role="status">{t.running(application.done, application.total)}</Alert>
  if (unapplied.length > 0) return <Alert color="yellow">{t.unapplied}</Alert>
  return application === null ? null : <Text c="dimmed">{t.ended(application.changed)}</Text>
}

export default function TemplatePage({ id, me }: { id: string; me: Me }) {
  const [interval, setPolling] = useState<number | false>(RUNNING_MS)
  const read = useRead(templates.readTemplate, { params: { id } }, interval)
  const wanted = isRunning(read.data) ? RUNNING_MS : false
  if (read.data && wanted !== interval) setPolling(wanted)
  const product = useName(read.data?.productId ?? null)
  const [isEditing, editing] = useDisclosure(false)
  const [, navigate] = useLocation()
  const remove = useCall(templates.deleteTemplate, {
    done: t.deleted,
    onDone: () => navigate(`/products/${read.data?.productId ?? ''}`),
  })
  useRemembered(`/templates/${id}`, t.one, read.data?.name)
  if (read.error) return <ErrorMessage error={read.error} />
  if (!read.data) return <Waiting />
  const one = read.data
  const { name, productId, entitlements } = one
  const policy = { ...one.policy, expiresAt: null }
  const may = (permission: string) => me.permissions.includes(permission)
  return (
    <Screen
      title={name}
      actions={
        <>
          {may('licenses.read') && (
            <Button variant="default" component={Link} href={`/licenses?templateId=${id}`}>
              {t.licenses}
            </Button>
          )}
          {may('licenses.write') && !isRunning(one) && <Apply template={one} />}
          {may('products.write') && (
            <>
              <Button variant="default" onClick={editing.open}>
                {t.edit}
              </Button>
              <ConfirmButton
                label={text.delete}
                title={t.deleteTitle}
                consequence={t.deleteHint}
                onConfirm={() => remove.mutateAsync({ params: { id } })}
                isPending={remove.isPending}
              />
            </>
          )}
        </>
      }
    >
      <State template={one} />
      <Card withBorder>
        <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} component="dl" m={0}>
          <Fact term={text.licenses.product}>
            <TextLink href={`/products/${productId}`}>{product}</TextLink>
          </Fact>
          <Fact term={t.terms}>{termText({ policy })}</Fact>
          <Fact term={text.licenses.maxMachines}>{policy.maxMachines ?? text.unlimited}</Fact>
          <Fact term={text.license.slots}>{slotsOf({ policy })}</Fact>
          <Fact term={text.license.releases}>{policy.maxReleases ?? text.unlimited}</Fact>
          <Fact term={text.licenses.graceDays}>{policy.graceDays}</Fact>
          <Fact term={text.license.files}>{text.license.fileDays(policy.fileDays)}</Fact>
          <Fact term={text.entitlements.title}>
            <EntitlementList defaults={{}} overrides={entitlements} />
          </Fact>
          {one.priceIds.length > 0 && <Fact term={t.prices}>{one.priceIds.join(', ')}</Fact>}
          <Fact term="Id">
            <Copyable value={id} />
          </Fact>
        </SimpleGrid>
      </Card>
      {isEditing && <TemplateWindow productId={productId} before={one} onClose={editing.close} />}
    </Screen>
  )
}
