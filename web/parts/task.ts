import { ClientError } from 'legate/client'
import { useCallback, useState } from 'react'
import { messageOf } from '../data/client.ts'
import { say } from './toast.tsx'

/** Something that a person asked the server to do. */
export interface Task {
  readonly isBusy: boolean
  /** Why the last one did not succeed; null where it did. */
  readonly error: ClientError | null
  /** Does it. Says on the page what came of it, and gives whether it succeeded. */
  readonly run: (work: () => Promise<unknown>, done?: string) => Promise<boolean>
}

export function useTask(): Task {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<ClientError | null>(null)
  const run = useCallback(async (work: () => Promise<unknown>, done?: string) => {
    setBusy(true)
    setError(null)
    try {
      await work()
      if (done !== undefined) say(done)
      return true
    } catch (failure) {
      setError(failure instanceof ClientError ? failure : null)
      say(adviceIn(failure))
      return false
    } finally {
      setBusy(false)
    }
  }, [])
  return { isBusy, error, run }
}

function adviceIn(error: unknown): string {
  const advice = error instanceof ClientError && error.advice !== null ? ` ${error.advice}` : ''
  return messageOf(error) + advice
}
