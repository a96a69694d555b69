"""Commands as Qt's actions: in the menus, behind shortcuts, on buttons."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QObject, Slot
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu, QMenuBar, QWidget

from explorer.actions.command import Command
from explorer.actions.command_keys import CommandKeys
from explorer.actions.commands import CHANGING_COMMANDS, COMMANDS, MENUS
from explorer.actions.desk import Desk
from explorer.theme.icons import icon


class CommandAction(QAction):
    """Runs one command on the desk."""

    def __init__(self, command: Command, desk: Desk, parent: QObject) -> None:
        super().__init__(QCoreApplication.translate("Command", command.title), parent)
        self.command = command
        self._desk = desk
        keys = command.shortcut.split("|") if command.shortcut else []
        self.setShortcuts([QKeySequence(key) for key in keys])
        if command.icon:
            self.setIcon(icon(command.icon))
        self.setIconVisibleInMenu(False)
        shown = QKeySequence(keys[0]).toString(QKeySequence.SequenceFormat.NativeText) if keys else ""
        tooltip = QCoreApplication.translate("Command", command.tooltip)
        self.setToolTip(f"{tooltip} ({shown})" if shown else tooltip)
        self.setCheckable(command.is_checked is not None)
        self.triggered.connect(self._on_triggered)

    def refresh(self) -> None:
        """Read the state: may it run, does it bear a mark."""
        self.setEnabled(self.command.is_enabled(self._desk))
        if self.command.is_checked is not None:
            self.setChecked(self.command.is_checked(self._desk))

    @Slot()
    def _on_triggered(self) -> None:
        self.command.run(self._desk)
        self.refresh()


class ChangingMenu(QMenu):
    """A submenu whose rows are made when it opens, and again when what they tell changes while it is open."""

    def __init__(self, menu: str, title: str, desk: Desk, parent: QWidget) -> None:
        super().__init__(QCoreApplication.translate("Command", title), parent)
        self._changing = CHANGING_COMMANDS[menu, title]
        self._desk = desk
        self._is_open = False
        self._shown: list[tuple[str, str]] = []
        self.setToolTipsVisible(True)
        self.aboutToShow.connect(self._on_about_to_show)
        self.aboutToHide.connect(self._on_about_to_hide)

    def refresh(self) -> None:
        """Show the rows there are by now, while the menu is open."""
        if self._is_open and _told(self._changing.rows(self._desk)) != self._shown:
            self._fill()

    @Slot()
    def _on_about_to_show(self) -> None:
        self._is_open = True
        self._changing.look(self._desk)
        self._fill()

    @Slot()
    def _on_about_to_hide(self) -> None:
        self._is_open = False

    def _fill(self) -> None:
        for action in self.actions():
            self.removeAction(action)
            action.deleteLater()
        rows = self._changing.rows(self._desk)
        self._shown = _told(rows)
        for number, command in enumerate(rows, start=1):
            action = CommandAction(command, self._desk, self)
            action.setText(f"&{number} {action.text()}" if number < 10 else action.text())
            action.refresh()
            self.addAction(action)
        if self.isEmpty():
            self.addAction(QCoreApplication.translate("Command", "None yet")).setEnabled(False)


def _told(rows: tuple[Command, ...]) -> list[tuple[str, str]]:
    """What a person sees of rows."""
    return [(row.title, row.tooltip) for row in rows]


class ActionTable(QObject):
    """Every command of the table as an action of the window."""

    def __init__(self, desk: Desk, window: QWidget) -> None:
        super().__init__(window)
        self._desk = desk
        self._window = window
        self._changing_menus: list[ChangingMenu] = []
        self._actions = {command.key: CommandAction(command, desk, self) for command in COMMANDS}
        window.addActions(list(self._actions.values()))
        CommandKeys(self._actions.values(), window)

    def __getitem__(self, key: str) -> CommandAction:
        return self._actions[key]

    def refresh(self) -> None:
        for action in self._actions.values():
            action.refresh()
        for menu in self._changing_menus:
            menu.refresh()

    def fill(self, bar: QMenuBar) -> None:
        """Make the menus that have a row, in their order."""
        for name in MENUS:
            commands = [command for command in COMMANDS if command.menu == name]
            if commands:
                title = QCoreApplication.translate("Command", name)
                self._fill_menu(bar.addMenu(f"&{title}"), name, commands)  # their first letters are all different

    def changing_menu(self, menu: str, title: str) -> ChangingMenu:
        """A submenu that changes with the state, for a menu or a button."""
        made = ChangingMenu(menu, title, self._desk, self._window)
        self._changing_menus.append(made)
        return made

    def _fill_menu(self, menu: QMenu, name: str, commands: list[Command]) -> None:
        menu.setToolTipsVisible(True)
        menu.aboutToShow.connect(self.refresh)
        submenus: dict[str, QMenu] = {}
        for number, group in enumerate(dict.fromkeys(command.group for command in commands)):
            if number:
                menu.addSeparator()
            for command in (command for command in commands if command.group == group):
                target = menu
                if command.submenu:
                    if command.submenu not in submenus:
                        title = QCoreApplication.translate("Command", command.submenu)
                        submenus[command.submenu] = menu.addMenu(title)
                    target = submenus[command.submenu]
                target.addAction(self._actions[command.key])
            for at_menu, title in CHANGING_COMMANDS:
                if at_menu == name and number == 0:
                    menu.addMenu(self.changing_menu(name, title))
