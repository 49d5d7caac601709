/** The mails to customers, and the settings that switch them on. */

import { organizations } from '@keyward/contract'
import { type Mail, mails } from '@keyward/contract/management/mails'
import type { ResultOf } from '@keyward/contract/operations'
import { EXPIRING_DAYS } from '@keyward/contract/vocabulary'
import { Button, Select, Switch, Text, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'

import { useCall, useList, useRead } from '../api/hooks.ts'
import { useMay } from '../api/me.ts'
import { useFields } from '../parts/fields.ts'
import { ChoiceFilter, FilterBar } from '../parts/filters.tsx'
import { FormWindow } from '../parts/form.tsx'
import { Screen } from '../parts/page-header.tsx'
import { DotBadge, TextLink, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { useUrlFilters } from '../parts/url.ts'
import { text } from '../text.ts'

type Organization = ResultOf<typeof organizations.readOwnOrganization>

const TEMPLATES = { key: 'License key', ending: 'End of a license', portal: 'Link to the portal' } as const
const STATES = { PENDING: 'Waiting', SUCCEEDED: 'Sent', FAILED: 'Failed' } as const
const COLORS = { PENDING: 'blue', SUCCEEDED: 'teal', FAILED: 'red' } as const
const FILTERS = { status: null }
/** The list is read repeatedly while the next attempt of a mail is due within this time. */
const SOON_MS = 15_000
const NEVER = 'never'

const isDue = ({ nextAttemptAt }: Mail) => Date.parse(nextAttemptAt ?? '') < Date.now() + SOON_MS

function SettingsWindow({ before, onClose }: { before: Organization; onClose: () => void }) {
  const { mailKeys, mailPortal, mailEndingDays, mailSenderName, mailReplyTo } = before
  const fields = useFields({
    mailKeys,
    mailPortal,
    mailEndingDays,
    mailSenderName: mailSenderName ?? '',
    mailReplyTo: mailReplyTo ?? '',
  })
  const { values, change } = fields
  const saving = useCall(organizations.updateOwnOrganization, { done: 'Saved the settings of mails.', quiet: true })
  const submit = () =>
    saving.mutateAsync({
      body: {
        ...values,
        mailSenderName: values.mailSenderName.trim() || null,
        mailReplyTo: values.mailReplyTo.trim() || null,
      },
    })
  return (
    <FormWindow title="Settings of mails" action="Save" onClose={onClose} onSubmit={submit}>
      {(errors) => (
        <>
          <Switch
            label="Send the keys of an order to the customer"
            checked={values.mailKeys}
            onChange={({ currentTarget: { checked } }) => change({ mailKeys: checked })}
          />
          <Switch
            label="Let customers request a link to the portal"
            description={`On the page /portal?organization=${before.id} of this service.`}
            checked={values.mailPortal}
            onChange={({ currentTarget: { checked } }) => change({ mailPortal: checked })}
          />
          <Select
            label="Announce the end of a license"
            data={[
              { value: NEVER, label: 'Never' },
              ...EXPIRING_DAYS.map((days) => ({
                value: String(days),
                label: `${days} ${days === 1 ? 'day' : 'days'} before`,
              })),
            ]}
            value={String(values.mailEndingDays ?? NEVER)}
            onChange={(value) =>
              change({ mailEndingDays: EXPIRING_DAYS.find((days) => String(days) === value) ?? null })
            }
            allowDeselect={false}
          />
          <TextInput
            label="Sender"
            description={`The name that customers see. Without it, it is ${before.name}.`}
            {...fields.text('mailSenderName', errors)}
          />
          <TextInput
            label="Replies"
            description="The e-mail address to which customers reply."
            {...fields.text('mailReplyTo', errors)}
          />
        </>
      )}
    </FormWindow>
  )
}

function summaryOf({ mailEnabled, mailKeys, mailPortal, mailEndingDays }: Organization): string {
  if (!mailEnabled) return 'The operator of this installation has not set a mail server, so no mail is sent.'
  const orders = mailKeys ? 'Customers receive the keys of their orders.' : 'Orders send no mail.'
  const ends =
    mailEndingDays === null
      ? 'Ends of licenses are not announced.'
      : `Ends of licenses are announced ${mailEndingDays} days before.`
  const links = mailPortal ? ' Customers can request links to the portal.' : ''
  return `${orders} ${ends}${links}`.replace('1 days', '1 day')
}

export default function Mails() {
  const may = useMay()
  const { data: organization } = useRead(organizations.readOwnOrganization, {})
  const [isOpen, settings] = useDisclosure(false)
  const filters = useUrlFilters(FILTERS)
  const [query, , clear] = filters
  const list = useList(mails.listMails, { query }, isDue)
  const retry = useCall(mails.retryMail, { done: 'Sending the mail again.' })
  const columns: Column<Mail>[] = [
    {
      title: 'To',
      cell: ({ customerId, recipient }) =>
        customerId === null ? (
          (recipient ?? 'Deleted customer')
        ) : (
          <TextLink href={`/customers/${customerId}`}>{recipient}</TextLink>
        ),
    },
    { title: 'Mail', cell: ({ template }) => TEMPLATES[template] },
    { title: 'State', cell: ({ status }) => <DotBadge color={COLORS[status]}>{STATES[status]}</DotBadge> },
    { title: 'What happened', cell: ({ error }) => error },
    { title: 'Created', cell: ({ createdAt }) => <When at={createdAt} /> },
  ]
  if (may('customers.write') && organization?.mailEnabled === true)
    columns.push({
      title: text.actions,
      cell: ({ id, status }) =>
        status === 'FAILED' && (
          <Button size="xs" variant="default" onClick={() => retry.mutate({ params: { id } })}>
            Try again
          </Button>
        ),
    })
  const change = may('credentials.write') && organization?.mailEnabled === true && (
    <Button onClick={settings.open}>Settings</Button>
  )
  return (
    <Screen title="Mails" actions={change}>
      <Text c="dimmed">{organization && summaryOf(organization)}</Text>
      <FilterBar onClear={clear}>
        <ChoiceFilter filters={filters} name="status" label="State" names={STATES} />
      </FilterBar>
      <ListTable
        list={list}
        columns={columns}
        label="Mails"
        empty={clear ? 'No mail matches this filter.' : 'No mail has been sent in the last 30 days.'}
      />
      {isOpen && organization && <SettingsWindow before={organization} onClose={settings.close} />}
    </Screen>
  )
}
