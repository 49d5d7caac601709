/** Renders the mails (docs/api.md#e4). Each has a text part and the same text as plain HTML, without images. Only that of the portal has a link. */

import { z } from 'zod'

export interface Message {
  subject: string
  text: string
  html: string
}

/** The licenses of a mail, as its statement returns them. Deleted licenses are absent. */
export const mailedLicenses = z
  .array(
    z.object({
      key: z.string(),
      product: z.string(),
      status: z.enum(['active', 'suspended', 'revoked']),
      expiresAt: z
        .number()
        .transform((ms) => new Date(ms))
        .nullable(),
    }),
  )
  .nullable()
  .transform((licenses) => licenses ?? [])

export interface MailContent {
  template: 'key' | 'ending' | 'portal'
  sender: string
  timeZone: string | null
  endsAt: Date | null
  licenses: z.output<typeof mailedLicenses>
  /** The link of `portal`. */
  url: string | null
}

function escaped(value: string): string {
  return value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** A license that ends when a day begins is valid through the day before. */
function dayOf(end: Date, timeZone: string | null): string {
  const format = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: timeZone ?? 'UTC' })
  return format.format(new Date(end.getTime() - 1))
}

function message(subject: string, paragraphs: readonly string[]): Message {
  const html = paragraphs.map((one) => `<p>${escaped(one).replaceAll('\n', '<br>')}</p>`).join('\n')
  return { subject, text: `${paragraphs.join('\n\n')}\n`, html }
}

function renderKey({ sender, timeZone, licenses }: MailContent): Message | string {
  const valid = licenses.filter(({ status }) => status !== 'revoked')
  const [first] = valid
  if (first === undefined) return 'The license has been deleted, revoked or moved.'
  const [are, keys] = valid.length === 1 ? ['This is', 'license key'] : ['These are', 'license keys']
  const end = first.expiresAt === null ? [] : [`Valid until ${dayOf(first.expiresAt, timeZone)}.`]
  return message(`Your ${keys} for ${first.product}`, [
    'Hello,',
    `${are.toLowerCase()} your ${keys} for ${first.product}:`,
    valid.map(({ key }) => key).join('\n'),
    ...end,
    sender,
  ])
}

function renderEnding({ sender, timeZone, endsAt, licenses }: MailContent): Message | string {
  const [license] = licenses
  if (license?.status !== 'active' || endsAt === null || license.expiresAt?.getTime() !== endsAt.getTime())
    return 'The license no longer ends at this time.'
  const day = dayOf(endsAt, timeZone)
  return message(`Your license for ${license.product} ends on ${day}`, [
    'Hello,',
    `your license for ${license.product}, whose key ends with ${license.key.slice(-4)}, ends on ${day}.`,
    `To renew it, contact ${sender}.`,
  ])
}

function renderPortal({ sender, url }: MailContent): Message | string {
  if (url === null) return 'The link is missing.'
  const rendered = message('Your link to your licenses', [
    'Hello,',
    `this link opens the page of your licenses from ${sender}:`,
    url,
    'It works once, for 15 minutes. If you did not ask for it, ignore this mail.',
    sender,
  ])
  const shown = escaped(url)
  return { ...rendered, html: rendered.html.replace(`<p>${shown}</p>`, `<p><a href="${shown}">${shown}</a></p>`) }
}

/** Returns the message, or the reason why the mail is not sent. */
export function render(content: MailContent): Message | string {
  switch (content.template) {
    case 'key':
      return renderKey(content)
    case 'ending':
      return renderEnding(content)
    case 'portal':
      return renderPortal(content)
    default:
      return content.template satisfies never
  }
}
