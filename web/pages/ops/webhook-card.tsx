import type { ReactNode } from 'react'
import { client } from '../../data/client.ts'
import { useRequest } from '../../data/request.ts'
import { moment } from '../../words/format.ts'
import { Card, Table } from './card.tsx'

interface Webhook {
  readonly id: string
  readonly url: string
  readonly types: readonly string[]
  readonly disabled: { readonly at: number; readonly reason: string } | null
}

export function WebhookCard(): ReactNode {
  const webhooks = useRequest('webhooks', async () => (await client.webhooks()).webhooks)
  return (
    <Card title="Webhooks" width={5} asked={webhooks}>
      {(list) => (
        <Table label="Table of webhooks" heads={['Goes to', 'When', 'State']} empty="No webhooks.">
          {(list as unknown as readonly Webhook[]).map(({ id, url, types, disabled }) => (
            <tr key={id}>
              <td title={url}>{hostOf(url)}</td>
              <td>{types.map((type) => type.replace('.', ' ')).join(', ')}</td>
              <td>
                {disabled === null ? (
                  <span className="fg-done">on</span>
                ) : (
                  <span className="fg-failed" title={disabled.reason}>
                    off since {moment(disabled.at)}
                  </span>
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Card>
  )
}

function hostOf(url: string): string {
  try {
    return new URL(url).host
  } catch {
    return url
  }
}
