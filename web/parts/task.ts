import { ClientError } from 'legate/client'
import { useCallback, useState } from 'react'
import { messageOf } from '../data/client.ts'
import { say } from './toast.tsx'

/** Something that a person asked the server to do. */
export interface Task {
  readonly isBusy: boolean
  /** The error of the last request; null if it succeeded. */
  readonly error: ClientError | null
  /** Sends the request, shows its result on the page, and tells whether it succeeded. */
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
