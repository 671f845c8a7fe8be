import { useCounter } from './support/counter.ts'
import { failpointSuite } from './support/suites/failpoints.ts'

failpointSuite({ on: '', counter: await useCounter(), store: 'sqlite', isSample: false })
