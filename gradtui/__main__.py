"""`python -m gradtui`."""

from gradtui.commands import main

main()
