import { mail, mails } from '@keyward/contract/management/mails'
import { Option } from 'commander'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { listFlags, printList, readList, withLimit } from './lists.ts'

const { status } = mail.shape

export function addMailCommands(parent: CliCommand): void {
  const group = parent.command('mail').description('mails to customers, with their states')
  withLimit(group.command('list').description('list the mails of the last 30 days, newest first'))
    .addOption(new Option('--status <status>', 'only mails with this status').choices(status.options))
    .option('--customer <id>', 'only mails to this customer')
    .run(async (session, flags) => {
      const given = listFlags.extend({ status: status.optional(), customer: z.string().optional() }).parse(flags)
      const { limit, customer: customerId, ...query } = given
      printList(
        session,
        await readList(session.api, mails.listMails, { query: { ...query, customerId } }, limit),
        (one) => ({
          ID: one.id,
          TEMPLATE: one.template,
          TO: one.recipient ?? '',
          STATUS: one.status,
          CREATED: one.createdAt,
          ERROR: one.error ?? '',
        }),
      )
    })
  group
    .command('send-key')
    .description('send a license key to its customer')
    .argument('<license>', 'the id of the license')
    .run(async (session, _flags, licenseId: string) => {
      const { data } = await session.api.call(mails.sendMail, { body: { template: 'key', licenseId } })
      session.output.result(data, `${data.id}\n\nThe key is sent to ${data.recipient}.`)
    })
  group
    .command('retry')
    .description('send a failed mail again')
    .argument('<id>', 'the id of the mail')
    .run(async (session, _flags, id: string) => {
      const { data } = await session.api.call(mails.retryMail, { params: { id } })
      session.output.result(data, `The status of the mail is ${data.status}.`)
    })
}
