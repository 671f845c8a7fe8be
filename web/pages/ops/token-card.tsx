import { type ReactNode, useState } from 'react'
import { client } from '../../data/client.ts'
import { reload, useRequest } from '../../data/request.ts'
import { useServerInfo } from '../../data/server.ts'
import type { ServerInfo, TokenInfo } from '../../data/types.ts'
import { Button, copy } from '../../parts/button.tsx'
import { Sheet } from '../../parts/dialog.tsx'
import { useTask } from '../../parts/task.ts'
import { exactText } from '../../words/exact.ts'
import { listOf, moment } from '../../words/format.ts'
import { Card, Table } from './card.tsx'

/** The tokens that one may see. A new one may at most what ours may. */
export function TokenCard(): ReactNode {
  const tokens = useRequest('tokens', async () => (await client.tokens()).tokens)
  const [isOpen, setOpen] = useState(false)
  const tools = (
    <Button isSmall icon="plus" onClick={() => setOpen(true)}>
      New token
    </Button>
  )
  return (
    <Card title="Tokens" width={7} tools={tools} asked={tokens}>
      {(list) => (
        <>
          <Table
            label="Table of tokens"
            heads={['For', 'May', 'Sees', 'Last used', 'Revoke']}
            empty="There is no stored token."
          >
            {list.map((token) => (
              <TokenRow key={token.id} token={token} />
            ))}
          </Table>
          {isOpen ? <NewToken onClose={() => setOpen(false)} /> : null}
        </>
      )}
    </Card>
  )
}

function TokenRow({ token }: { readonly token: TokenInfo }): ReactNode {
  const task = useTask()
  const { id, name, principal, lastUsedAt } = token
  const revoke = () =>
    void task.run(async () => {
      await client.revokeToken(id)
      reload('tokens')
    }, 'Revoked, with those below it')
  return (
    <tr>
      <td className="words">
        <b>{exactText(principal.id)}</b>
        {name === '' ? null : `, ${exactText(name)}`}
      </td>
      <td>{principal.scopes.includes('admin') ? 'everything' : listOf(principal.scopes)}</td>
      <td className="words">{seesWords(principal.sees)}</td>
      <td>{lastUsedAt === null ? 'never' : moment(lastUsedAt)}</td>
      <td>
        <Button look="quiet" isSmall className="btn-danger" disabled={task.isBusy} onClick={revoke}>
          Revoke<span className="vh"> the token of {principal.id}</span>
        </Button>
      </td>
    </tr>
  )
}

function seesWords(sees: ServerInfo['principal']['sees']): string {
  if (sees === undefined || typeof sees === 'string') return sees ?? 'own'
  return listOf(sees)
}

type Scope = ServerInfo['principal']['scopes'][number]

function NewToken({ onClose }: { readonly onClose: () => void }): ReactNode {
  const own = useServerInfo().value?.principal.scopes ?? []
  const [name, setName] = useState('')
  const [scopes, setScopes] = useState<readonly Scope[]>(['read'])
  const [made, setMade] = useState<string | null>(null)
  const task = useTask()
  const toggle = (scope: Scope) =>
    setScopes(scopes.includes(scope) ? scopes.filter((one) => one !== scope) : [...scopes, scope])
  const make = () =>
    void task.run(async () => {
      const { token } = await client.addToken({ name, principal: { scopes } })
      setMade(token)
      reload('tokens')
    })
  if (made !== null) return <MadeToken token={made} onClose={onClose} />
  return (
    <Sheet title="New token" onClose={onClose}>
      <div className="form">
        <label className="field">
          <span className="name">What is it for</span>
          <input className="in" value={name} placeholder="phone" onChange={(event) => setName(event.target.value)} />
        </label>
        <fieldset className="field">
          <legend className="name">It may</legend>
          <div className="checks">
            {own.map((scope) => (
              <label key={scope} className="check">
                <input type="checkbox" checked={scopes.includes(scope)} onChange={() => toggle(scope)} />
                {scope}
              </label>
            ))}
          </div>
        </fieldset>
        <p className="dim">It can do at most what your own token can, and ends with it.</p>
        <Button look="primary" disabled={task.isBusy || scopes.length === 0} onClick={make}>
          Make token
        </Button>
      </div>
    </Sheet>
  )
}

function MadeToken({ token, onClose }: { readonly token: string; readonly onClose: () => void }): ReactNode {
  return (
    <Sheet title="Your new token" onClose={onClose}>
      <p>Copy it now. It is shown this once.</p>
      <pre className="cmd">{token}</pre>
      <Button look="primary" icon="copy" onClick={() => copy(token, 'Copied')}>
        Copy
      </Button>
    </Sheet>
  )
}
