import { type KeyboardEvent, type ReactNode, useLayoutEffect, useRef, useState } from 'react'
import { client } from '../../data/client.ts'
import { useConnection } from '../../data/feed.ts'
import { useMay } from '../../data/server.ts'
import { useConversationTree, useTreeSource } from '../../data/tree.ts'
import type { ConversationAnswer } from '../../data/types.ts'
import { Button } from '../../parts/button.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Menu } from '../../parts/menu.tsx'
import { useTask } from '../../parts/task.ts'

type Order = 'queue' | 'restart'

const ORDERS: Readonly<Record<Order, string>> = { queue: 'When this turn is over', restart: 'Instead of this turn' }

/** Says something to the agent of the conversation. A child hears only its host. */
export function Composer({ conversation }: { readonly conversation: ConversationAnswer }): ReactNode {
  const mayStart = useMay('start')
  const { isPast } = useTreeSource()
  if (!mayStart || isPast || conversation.parentRunId !== null || conversation.archivedAt !== null) return null
  return <OpenComposer conversation={conversation} />
}

function OpenComposer({ conversation }: { readonly conversation: ConversationAnswer }): ReactNode {
  const [text, setText] = useState('')
  const [order, setOrder] = useState<Order>('queue')
  const field = useRef<HTMLTextAreaElement>(null)
  const task = useTask()
  const isLive = useConnection().kind === 'live'
  const run = useConversationTree(conversation.id)?.runs.at(-1)
  const isBusy = run !== undefined && run.state !== 'ended'
  useGrowing(field, text)
  const send = async () => {
    if (text.trim() === '' || task.isBusy || !isLive) return
    const isSent = await task.run(
      () => client.conversation(conversation.id).send(text, isBusy ? { whileRunning: order } : {}),
      isBusy && order === 'queue' ? 'Queued: it is answered when this turn is over' : 'Sent',
    )
    if (isSent) setText('')
  }
  const press = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    void send()
  }
  const lane = conversation.forkedAt === null ? '' : `, in lane ${conversation.title ?? 'without a name'}`
  return (
    <div className="composer">
      <div className="composer-in">
        <label>
          <span className="vh">Message to {conversation.agent}</span>
          <textarea
            ref={field}
            rows={1}
            placeholder={`Say something to ${conversation.agent}${lane}`}
            value={text}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={press}
          />
        </label>
        {isBusy ? <OrderMenu order={order} onOrder={setOrder} /> : null}
        <Button
          isSmall
          look="primary"
          aria-label="Send"
          disabled={text.trim() === '' || task.isBusy || !isLive}
          onClick={() => {
            void send()
          }}
        >
          <Icon name="up" />
        </Button>
      </div>
    </div>
  )
}

const MOST_HEIGHT = 200

/** The field is as high as its text. */
function useGrowing(field: { readonly current: HTMLTextAreaElement | null }, text: string): void {
  useLayoutEffect(() => {
    const element = field.current
    if (element === null) return
    element.style.height = 'auto'
    if (text !== '') element.style.height = `${Math.min(MOST_HEIGHT, element.scrollHeight)}px`
  }, [field, text])
}

/** While a turn goes on: after it, or instead of it. */
function OrderMenu({ order, onOrder }: { readonly order: Order; readonly onOrder: (order: Order) => void }): ReactNode {
  return (
    <span className="menu-anchor">
      <Menu
        label="When to answer it"
        button={({ isOpen, toggle, id }) => (
          <Button
            look="quiet"
            isSmall
            aria-haspopup="menu"
            aria-expanded={isOpen}
            aria-controls={isOpen ? id : undefined}
            onClick={toggle}
          >
            {ORDERS[order]}
            <Icon name="down" />
          </Button>
        )}
        items={() => [
          {
            icon: 'time',
            label: ORDERS.queue,
            hint: 'It waits its turn',
            onSelect: () => onOrder('queue'),
          },
          {
            icon: 'retry',
            label: ORDERS.restart,
            hint: 'Stops the current run and its subagents',
            onSelect: () => onOrder('restart'),
          },
        ]}
      />
    </span>
  )
}
