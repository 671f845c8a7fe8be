import type { ReactNode } from 'react'
import { client } from '../../data/client.ts'
import { useConnection } from '../../data/feed.ts'
import { reload } from '../../data/request.ts'
import { useMay } from '../../data/server.ts'
import { useTask } from '../../data/task.ts'
import { Button } from '../../parts/button.tsx'

/** The three words that a person can say of a call whose effect is uncertain. */
export function SettleButtons({ nodeId }: { readonly nodeId: string }): ReactNode {
  const task = useTask()
  const maySettle = useMay('approve')
  const isLive = useConnection().kind === 'live'
  if (!maySettle) return null
  const settle = (word: Parameters<typeof client.settle>[1], done: string) => () => {
    void task.run(() => client.settle(nodeId, word), done).then(() => reload('lists '))
  }
  const isOff = task.isBusy || !isLive
  return (
    <>
      <Button
        isSmall
        disabled={isOff}
        onClick={settle({ happened: true }, 'Noted: it happened. Nothing is run again.')}
      >
        It happened
      </Button>
      <Button isSmall disabled={isOff} onClick={settle({ happened: false }, 'Noted: it did not. It runs again.')}>
        It did not, run it
      </Button>
      <Button isSmall look="quiet" disabled={isOff} onClick={settle({ leave: true }, 'Left as it is')}>
        Leave it
      </Button>
    </>
  )
}
