-- Links to the portal by mail (docs/api.md#u6). The recipient of such a mail is the requested address, and its customer is looked up when it is sent.
alter table organizations add column mail_portal boolean not null default false;
alter table mails drop constraint mails_template_check;
alter table mails add constraint mails_template_check check (template in ('key', 'ending', 'portal')) not valid;
