import { forgetBetweenNodes } from 'legate/testing'

forgetBetweenNodes()
